"""Runs a command on a pseudo-terminal: types each input after its prompt, and prints what the terminal shows as JSON.

What it shows also appears on stderr, as it happens. COLUMNS is the width of the terminal. SILENCE is for how many seconds
it may show nothing. Its own input is typed, too. SIGTERM or the end of that input ends the command, so that it doesn't
outlive a test that was killed.
"""

import fcntl
import json
import os
import pty
import select
import signal
import struct
import sys
import termios

command, script = json.loads(sys.argv[1]), json.loads(sys.argv[2])
child, terminal = pty.fork()
if child == 0:
    size = struct.pack("HHHH", 24, int(os.environ.get("COLUMNS", 80)), 0, 0)
    fcntl.ioctl(0, termios.TIOCSWINSZ, size)
    os.execvp(command[0], command)


def end(*_):
    os.killpg(child, signal.SIGKILL)  # the command leads a session of its own


signal.signal(signal.SIGTERM, end)

shown = ""
read = 0
heard = [terminal, 0]
while ready := select.select(heard, [], [], int(os.environ.get("SILENCE", 30)))[0]:
    if 0 in ready:
        keys = os.read(0, 1024)
        if keys:
            os.write(terminal, keys)
        else:
            end()
            heard.remove(0)
    if terminal not in ready:
        continue
    try:
        chunk = os.read(terminal, 1024)
    except OSError:  # Linux reports the end of the child as an error
        break
    if not chunk:
        break
    shown += chunk.decode(errors="replace")
    os.write(2, chunk)
    while script and script[0][0] in shown[read:]:
        prompt, keys = script.pop(0)
        read = shown.index(prompt, read) + len(prompt)
        os.write(terminal, keys.encode())

_, status = os.waitpid(child, 0)
print(json.dumps({"shown": shown, "code": os.waitstatus_to_exitcode(status)}))

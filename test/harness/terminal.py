"""Runs a command on a pseudo-terminal: types each input after its prompt, and prints what the terminal shows as JSON.

What it shows also appears on stderr, as it happens. COLUMNS is the width of the terminal.
"""

import fcntl
import json
import os
import pty
import select
import struct
import sys
import termios

command, script = json.loads(sys.argv[1]), json.loads(sys.argv[2])
child, terminal = pty.fork()
if child == 0:
    size = struct.pack("HHHH", 24, int(os.environ.get("COLUMNS", 80)), 0, 0)
    fcntl.ioctl(0, termios.TIOCSWINSZ, size)
    os.execvp(command[0], command)

shown = ""
read = 0
while select.select([terminal], [], [], 30)[0]:
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

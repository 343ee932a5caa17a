"""Runs a command on a pseudo-terminal that vanishes when a line arrives on stdin. Exits as the command does.

What the command prints until then appears on stdout. SIGTERM is passed on.
"""

import json
import os
import pty
import select
import signal
import subprocess
import sys

command = json.loads(sys.argv[1])
terminal, end = pty.openpty()
child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=end, stderr=end)
os.close(end)
signal.signal(signal.SIGTERM, lambda *_: child.terminate())
while True:
    ready, _, _ = select.select([terminal, sys.stdin], [], [])
    if sys.stdin in ready:
        break
    os.write(1, os.read(terminal, 65536))
os.close(terminal)
sys.exit(child.wait())

#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
# terminal.py [-s COLSxROWS] [-d TEXT=ACTION]... [-t RAW] -- COMMAND...
# Run a command on a pseudo-terminal of its own, under a little shell that knows Ctrl-Z and fg, and
# send its output through a terminal emulator. Each ACTION is done, in their order, when its TEXT (an
# expression) is on the screen; that screen is printed, and at the end the last one with its
# scrollback and the exit status. RAW gets every byte of the output.
import argparse, fcntl, os, pty, re, select, signal, struct, sys, termios, time

import pyte

PATIENCE_S = 60  # a text that does not come
PIECE_S = 0.02  # between two pieces of one drawing
DRAWING_MAX = 1 << 20


def arguments():
	p = argparse.ArgumentParser()
	p.add_argument("-s", "--size", default="80x24")
	p.add_argument("-d", "--do", action="append", default=[], metavar="TEXT=ACTION",
		help="ACTION: size:COLSxROWS, key:C, fg, show, hang, touch:FILE")
	p.add_argument("-t", "--raw")
	p.add_argument("command", nargs="+")
	return p.parse_args()


def size(text):
	columns, rows = text.split("x")
	return int(columns), int(rows)


# What a shell does for one command: it is in front until it stops, and again after SIGUSR1; it is told
# when the terminal is gone.
def shell(command):
	child = os.fork()
	if child == 0:
		os.setpgid(0, 0)
		signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTTOU])
		os.tcsetpgrp(0, os.getpgrp())
		signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTTOU])
		os.execvp(command[0], command)
	signal.signal(signal.SIGTTOU, signal.SIG_IGN)
	signal.signal(signal.SIGINT, signal.SIG_IGN)
	signal.signal(signal.SIGHUP, lambda *_: os.killpg(child, signal.SIGHUP))

	def foreground(*_):
		os.tcsetpgrp(0, child)
		os.killpg(child, signal.SIGCONT)

	signal.signal(signal.SIGUSR1, foreground)
	while True:
		status = os.waitpid(child, os.WUNTRACED)[1]
		if not os.WIFSTOPPED(status):
			os._exit(os.waitstatus_to_exitcode(status) % 256)
		os.tcsetpgrp(0, os.getpgrp())
		os.write(1, b"[1]+ stopped\n")


class Terminal:
	def __init__(self, args):
		self.columns, self.rows = size(args.size)
		self.screen = pyte.HistoryScreen(self.columns, self.rows, history=10000, ratio=0.5)
		self.stream = pyte.ByteStream(self.screen)
		self.raw = open(args.raw, "wb") if args.raw else None
		self.pid, self.fd = pty.fork()
		if self.pid == 0:
			shell(args.command)
		self.resize(self.columns, self.rows)

	def resize(self, columns, rows):
		self.screen.resize(rows, columns)
		fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

	# False at the end of the output.
	def read(self, timeout_s):
		if not select.select([self.fd], [], [], timeout_s)[0]:
			return True
		try:
			data = os.read(self.fd, 65536)
		except OSError:
			return False
		if self.raw:
			self.raw.write(data)
		# One drawing is one write, which a busy machine may hand over in pieces: all of it is fed.
		while len(data) < DRAWING_MAX and select.select([self.fd], [], [], PIECE_S)[0]:
			try:
				more = os.read(self.fd, 65536)
			except OSError:
				break
			if not more:
				break
			data += more
			if self.raw:
				self.raw.write(more)
		self.stream.feed(data)
		return bool(data)

	def text(self):
		return "\n".join(line.rstrip() for line in self.screen.display).rstrip("\n")

	def scrollback(self):
		lines = []
		for line in self.screen.history.top:
			lines.append("".join(line[x].data for x in range(max(line, default=-1) + 1)).rstrip())
		return "\n".join(lines + [""]) if lines else ""

	def show(self, title):
		print(f"== {title}\n{self.text()}")
		sys.stdout.flush()

	def act(self, action):
		name, _, value = action.partition(":")
		if name == "size":
			self.resize(*size(value))
		elif name == "key":
			os.write(self.fd, value.encode().decode("unicode_escape").encode())
		elif name == "fg":
			os.kill(self.pid, signal.SIGUSR1)
		elif name == "hang":
			os.close(self.fd)
		elif name == "touch":
			open(value, "w").close()
		elif name != "show":
			sys.exit(f"terminal.py: no action is called {name}")


def main():
	args = arguments()
	t = Terminal(args)
	steps = [s.rsplit("=", 1) for s in args.do]
	until = time.monotonic() + PATIENCE_S
	while True:
		while steps and re.search(steps[0][0], t.text(), re.MULTILINE):
			text, action = steps.pop(0)
			t.show(f"{text} {action}")
			t.act(action)
			if action == "hang":
				sys.exit(os.waitstatus_to_exitcode(os.waitpid(t.pid, 0)[1]) % 256)
			until = time.monotonic() + PATIENCE_S
		if not t.read(1):
			break
		if time.monotonic() > until:
			t.show("timeout")
			os.close(t.fd)
			sys.exit(f"terminal.py: {steps[0][0] if steps else 'the end'} did not come")
	status = os.waitstatus_to_exitcode(os.waitpid(t.pid, 0)[1])
	print(f"== end {status}\n{t.scrollback()}{t.text()}")
	if steps:
		sys.exit(f"terminal.py: {steps[0][0]} did not come")


main()

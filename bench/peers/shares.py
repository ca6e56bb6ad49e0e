"""Time for each case of a script of this folder, so that one that hangs, or tunes for minutes, takes it from no other.

A case is a process of its own with an equal share of the time that is left: what one leaves is the others'. A process
whose share is over is killed with all that it started. When all had their turn those get a second one, for the lengths
that are missing, with what is left then: what Triton compiled is on the disk. So it is when all of them compiled side
by side before the first turn. Lines are passed on as they come.
"""

import os
import signal
import subprocess
import sys
import threading
import time


class Turn:
    """A case and the lengths that nothing was said of yet."""

    def __init__(self, peer, case, lengths):
        self.peer, self.case, self.lengths = peer, case, list(lengths)

    def hear(self, line):
        """A line of its process, which is passed on."""
        fields = line.split("\t")
        for length in list(self.lengths):
            measured = len(fields) == 8 and fields[2] == self.case and fields[3] == str(length)
            told = fields[0] == "skipped" and len(fields) > 2 and fields[2].startswith(f"{self.case}, length {length},")
            if measured or told:
                self.lengths.remove(length)

    def skip(self, why):
        lengths = ", ".join(map(str, self.lengths))
        print(f"skipped\t{self.peer}\t{self.case}, length {lengths}\t{why}", flush=True)


class Process:
    """A command, whose lines go to `hear` and to stdout; comments that were there before do not."""

    def __init__(self, command, hear, comments):
        self.nothing_can_be_measured = False
        self._hear, self._comments = hear, comments
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, errors="replace", start_new_session=True
        )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self):
        for line in self._process.stdout:
            line = line.rstrip("\n")
            if line.startswith("#"):
                if line in self._comments:
                    continue
                self._comments.add(line)
            fields = line.split("\t")
            self.nothing_can_be_measured |= fields[0] == "skipped" and fields[2:3] == ["all"]
            self._hear(line)
            print(line, flush=True)

    def wait(self, seconds):
        """Its status; None: it was killed, since so many seconds did not suffice."""
        try:
            status = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            status = None
        finally:
            self.kill()
            self._reader.join()
        return status

    def kill(self):
        kill_group(self._process)


def kill_group(process):
    """The process, and all that it started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def _take_turns(turns, command, end, comments):
    """Each of them once; gives those whose time was over, or None: nothing can be measured here at all."""
    late = []
    for i, turn in enumerate(turns):
        share = max((end - time.monotonic()) / (len(turns) - i), 0.1)
        process = Process(command(turn.case, turn.lengths), turn.hear, comments)
        status = process.wait(share)
        if process.nothing_can_be_measured:
            return None
        if status is None:
            print(f"# {turn.case}: stopped after its {share:.0f} s", flush=True)
            late.append(turn)
        elif turn.lengths:
            turn.skip(f"its process ended with status {status}")
    return [turn for turn in late if turn.lengths]


def _compile_side_by_side(turns, command, end):
    """Each case once, all at once, and nothing of what they say is heard: times beside others are no times. What they
    compiled is on the disk then, which one case alone takes minutes for: Triton compiles on one core. What fails here
    fails again in its turn, which says why."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True}
    started = []
    try:
        for turn in turns:
            started.append(subprocess.Popen(command(turn.case, turn.lengths), **quiet))
        for process in started:
            process.wait(max(end - time.monotonic(), 0.1))
    except subprocess.TimeoutExpired:
        pass
    finally:
        ended = sum(process.poll() == 0 for process in started)
        for process in started:
            kill_group(process)
    print(f"# {ended} of {len(turns)} cases compiled all they need", flush=True)


def share_out(turns, command, seconds, compiling=0):
    """Measure all turns within so many seconds: command(case, lengths) is what measures one. The first `compiling`
    seconds at most are for what they compile, side by side."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is killed, too
    end = time.monotonic() + seconds
    if compiling:
        _compile_side_by_side(turns, command, end - seconds + compiling)
    comments = set()
    print(f"# {len(turns)} cases, {end - time.monotonic():.0f} s: each has an equal share of what is left", flush=True)
    late = _take_turns(turns, command, end, comments)
    if late and time.monotonic() < end:
        late = _take_turns(late, command, end, comments)
    for turn in late or ():
        turn.skip(f"did not end within its shares of the {seconds:g} s of --seconds")


def end_with_the_parent():
    """Called by a process that share_out started: it goes when the other is killed and cannot say so."""
    import ctypes

    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG

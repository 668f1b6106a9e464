"""One mutant against the tests: caught, or not, and by which."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from mutation.choice import Map, Nearness, Progress, Test, wanted_blocks
from mutation.forks import run_tests
from mutation.plugin import Chosen
from mutation.project import Mutant, Project

NOTHING_COLLECTED = 5
FIRST_GROUP = 2  # files of tests tried together at first; each next group is twice as large


@dataclass
class Verdict:
    """What became of a mutant; `complete` if every test that executes it was tried."""

    caught_by: str = ""
    how: str = ""
    num_tests: int = 0
    num_files: int = 0
    complete: bool = False
    seconds: float = 0.0
    mutant: dict[str, Any] = field(default_factory=dict)


@dataclass
class Trial:
    """Tries mutants; remembers which tests pass by themselves."""

    project: Project
    tests: Map
    near: Nearness
    folder: Path
    budget: float  # seconds of tests for one mutant
    max_files: int  # files of tests looked into for one mutant; 0 for all

    def __post_init__(self) -> None:
        path = self.folder / "alone.json"
        self.alone: dict[str, bool] = json.loads(path.read_text()) if path.exists() else {}

    def judge(self, mutant: Mutant, tell: Progress) -> Verdict:
        wanted, ranked = wanted_blocks(self.project, mutant), self.near.ranked(mutant)
        reach = ranked[: self.max_files] if self.max_files else ranked
        verdict = Verdict(mutant=asdict(mutant), complete=len(reach) == len(ranked))
        size = FIRST_GROUP
        while reach:
            group, reach = reach[:size], reach[size:]
            size *= 2
            for file in group:
                if self.tests.record(file) is None:
                    tell(f"recording {file}")
                    self.tests.make(file)
            verdict.num_files += len(group)
            tests = self._ordered([test for file in group for test in self.tests.tests(file, wanted)])
            affordable, spent = [], verdict.seconds
            for test in tests:
                spent += test.seconds
                if spent <= self.budget or not (verdict.num_tests or affordable):
                    affordable.append(test)
            verdict.complete &= len(affordable) == len(tests)
            tell(f"{mutant.file}:{mutant.line}, {len(affordable)} tests")
            if affordable and self._fails(mutant, affordable, verdict):
                return verdict
        return verdict

    def _ordered(self, tests: list[Test]) -> list[Test]:
        """The quickest file first, in it the quickest test: fixtures of a file are then made once."""
        total: dict[str, float] = {}
        for test in tests:
            total[test.file] = total.get(test.file, 0.0) + test.seconds
        return sorted(tests, key=lambda test: (total[test.file], test.file, test.seconds))

    def _fails(self, mutant: Mutant, tests: list[Test], verdict: Verdict) -> bool:
        """Try the tests until one fails that passes without the mutant."""
        while tests:
            failed = self._run({"mode": "mutant", "file": mutant.file, "index": mutant.index}, tests)
            if failed is None or self._passes_alone(failed["test"], tests):
                break
            tests = [test for test in tests if test.name != failed["test"]]
        else:
            return False
        verdict.num_tests += len(tests)
        verdict.seconds += sum(test.seconds for test in tests)
        if failed is None:
            return False
        verdict.caught_by, verdict.how = failed["test"], failed["what"]
        return True

    def _run(self, asked: dict[str, Any], tests: list[Test]) -> dict[str, str] | None:
        """The first test that fails, or None."""
        limits = {test.name: 60.0 + 10 * test.seconds for test in tests}
        out = self.folder / "failed"
        out.write_text("")
        files = list(dict.fromkeys(test.file for test in tests))
        code = run_tests(self.project, asked, ["-x", *files], lambda: [Chosen(limits, out)], 120 + sum(limits.values()))
        told = [json.loads(line) for line in out.read_text().splitlines()]
        if code in (0, NOTHING_COLLECTED):  # none, where the mutant changes the tests' parameters
            return None
        if told:
            return told[0]
        if code is None or code < 0:
            return {"test": "", "what": "killed: out of time" if code is None else f"died of signal {-code}"}
        raise RuntimeError(f"pytest ended with {code} and no test failed: {asked}, {files}")

    def _passes_alone(self, name: str, tests: list[Test]) -> bool:
        """Whether a test that failed passes by itself on unchanged code; else its failure says nothing."""
        chosen = [test for test in tests if test.name == name]
        if not chosen:
            return True  # a file of tests, or of the project, that could not be imported: recording it could
        if name not in self.alone:
            self.alone[name] = self._run({"mode": "mutant", "file": "", "index": 0}, chosen) is None
            (self.folder / "alone.json").write_text(json.dumps(self.alone))
        return self.alone[name]

"""./course doctor: measures this machine, or judges a program by its timeline."""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "checks" / "support"))
import program  # noqa: E402
import recording  # noqa: E402
import report as pages  # noqa: E402
import timeline  # noqa: E402
from builder import compile_targets, configure  # noqa: E402
from checklist import checklist  # noqa: E402
from project import BUILD, Complaint, choose_rig, environment_of, node_of  # noqa: E402

PROGRAM = BUILD / "doctor" / "doctor"
PCI = Path("/sys/bus/pci/devices")
LINK_FILES = {"generation": "current_link_speed", "max_generation": "max_link_speed",
              "width": "current_link_width", "max_width": "max_link_width"}
GENERATIONS = {"2.5": 1, "5.0": 2, "8.0": 3, "16.0": 4, "32.0": 5, "64.0": 6}


def number_in(path):
    """A link's width or generation as sysfs writes it; 0 when it does not tell."""
    try:
        word = path.read_text(encoding="ascii").split()[0]
    except (OSError, IndexError):
        return 0
    if "speed" in path.name:
        return GENERATIONS.get(word, 0)
    return int(word) if word.isdigit() else 0


class LinkWatch:
    """The state of every PCI device's link while something runs: an idle GPU's link sleeps at a lower generation."""

    def __init__(self):
        self.links, self.ended = {}, threading.Event()
        self.thread = threading.Thread(target=self.look, daemon=True)

    def look(self):
        while not self.ended.wait(0.2):
            for device in PCI.glob("*"):
                found = {name: number_in(device / file) for name, file in LINK_FILES.items()}
                former = self.links.get(device.name, {})
                self.links[device.name] = {name: max(value, former.get(name, 0)) for name, value in found.items()}

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()


def numa_node(pci):
    try:
        return int((PCI / pci / "numa_node").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def numa_nodes_of_process():
    """The NUMA nodes whose processors this process may use."""
    allowed = os.sched_getaffinity(0)
    nodes = []
    for folder in Path("/sys/devices/system/node").glob("node[0-9]*"):
        if any((folder / f"cpu{cpu}").exists() for cpu in allowed):
            nodes.append(int(folder.name[4:]))
    return nodes


def add_facts_of_system(report, links):
    for gpu in report["gpus"]:
        pci = gpu["pci"].lower()
        gpu["link"] = links.get(pci)
        gpu["numa_node"] = numa_node(pci)
    report["numa_nodes_of_process"] = numa_nodes_of_process()


def measure(rig, node):
    """The doctor's report on a rig."""
    configure()
    compile_targets("doctor-programs")
    with LinkWatch() as watch:
        answer = subprocess.run([str(PROGRAM)], env=environment_of(rig, node), text=True, stdout=subprocess.PIPE)
    if answer.returncode != 0:
        raise Complaint("the measurement ended early, for the reason above; figures of a part are not shown")
    report = json.loads(answer.stdout)
    report["rig"], report["date"] = rig, time.strftime("%Y-%m-%d")
    report["place"] = f"simulated node {node_of(node)}" if rig == "sim" else "this machine"
    if rig == "gpu":
        add_facts_of_system(report, watch.links)
    return report


def write(path, text):
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise Complaint(f"{path} cannot be written: {error.strerror}") from error
    print(f"{path}: written", file=sys.stderr)


def judge_program(options, rig):
    command = options.program
    trace = BUILD / "timeline-of-program.json"
    configure()
    if rig == "sim":
        compile_targets("doctor-programs")
    code = recording.run(command, rig, options.node, trace)
    if code != 0:
        print(f"\n{command[0]} ended with code {code}", file=sys.stderr)
    try:
        spans = timeline.last_phase(timeline.read(trace))
    except timeline.TraceError as error:
        raise Complaint(f"{error}. Is it linked with -cudart shared?" if rig == "sim" else str(error)) from error
    if options.json:
        found = [vars(finding) for finding in program.judge(spans)]
        write(options.json, json.dumps({"whole_ms": max(span.end for span in spans), "findings": found}, indent=1))
    print()
    for line in [*timeline.draw(spans), "", *program.text(spans), *timeline.unused(trace)]:
        print(line)
    print(f"\nIn full, for ui.perfetto.dev: {trace}")
    return code


def doctor(options):
    rig = choose_rig(options.rig, options.node)
    if options.program is not None:
        if not options.program:
            raise Complaint("--program needs the command that starts it, as in: ./course doctor --program ./solver input.txt")
        return judge_program(options, rig)
    report = measure(rig, options.node)
    lines = checklist(report)
    report["checklist"] = [vars(line) for line in lines]
    for line in pages.text(report, lines):
        print(line)
    if options.json:
        write(options.json, json.dumps(report, indent=1))
    if options.html:
        write(options.html, pages.page(report, lines))
    return 0

"""Records of cases as tables for a terminal."""

from project import lessons, source_of
from run_case import WIDTH, details, figure_line, reasons, rig_text, wrap

BAR = 30  # characters


def title(lesson):
    number, name = lesson.split("-", 1)
    return f"Lesson {number}: {name.replace('-', ' ')}"


def points(records):
    """(points reached, points to be had, points of cases that could not be judged)"""
    reached = sum(record["points"] for record in records if record["verdict"] == "pass")
    unjudged = sum(record["points"] for record in records if record["verdict"] not in ("pass", "fail"))
    return reached, sum(record["points"] for record in records), unjudged


def points_text(records):
    reached, all_points, unjudged = points(records)
    text = f"{reached} of {all_points} points"
    return text + (f", {unjudged} not judged" if unjudged else "")


def row(left, right):
    space = WIDTH - len(right) - 1
    return f"{left[:space]:<{space}} {right}"


def bar(figure):
    """A figure beside its threshold: filled as far as it goes, `|` where it has to be."""
    if figure["value"] is None or not figure["reference"]:
        return ""
    share = figure["value"] / figure["reference"]
    whole = 1.0 if figure["more_is_better"] else 2 * figure["limit"]

    def place(part):
        return max(0, min(BAR, round(BAR * part / max(whole, figure["limit"]))))

    cells = ["#"] * place(share) + ["."] * (BAR - place(share))
    cells.insert(place(figure["limit"]), "|")
    return "[" + "".join(cells) + "]"


def print_lesson(records, lesson, in_full):
    """One line a case, and under each that did not pass its figure or reason; everything `in_full`.

    Of a file that does not compile only the compiler's message."""
    print(row(title(lesson), points_text(records)))
    messages = {record["compiler"] for record in records if record.get("compiler")}
    if messages:
        print("\n".join(sorted(messages)))
        return
    for record in records:
        word = {"pass": "pass", "fail": "FAIL", "skip": "skip"}.get(record["verdict"], "????")
        print(row(f"  {word}  {record['case']}", f"{record['points']} p"))
        for figure in record.get("figures", []):
            print("\n".join(wrap(figure_line(figure), "        ")))
            if in_full and bar(figure):
                print("        " + bar(figure))
        if in_full:
            print("".join(line + "\n" for line in details(record, "        ")), end="")
        elif record["verdict"] != "pass" and not record.get("figures"):
            print("\n".join(wrap((reasons(record) or ["?"])[0], "        ")[:2]))


def all_passed(records):
    return all(record["verdict"] == "pass" for record in records)


def print_total(records, submission):
    reached, all_points, unjudged = points(records)
    print(row(f"{submission}, on {rig_text(records[0])}", points_text(records)))
    if records[0]["rig"] == "sim":
        print("The simulated node teaches and tests; the final grade is made on real GPUs.")
    if records[0]["rig"] == "gpu" and unjudged:
        print("Cases that this machine cannot show can be tried with --rig sim.")


def print_next_step(is_done):
    """What to do about the first lesson that is not done yet; `is_done` maps lessons to bool."""
    for lesson in lessons():
        if is_done.get(lesson):
            continue
        number = lesson.split("-")[0]
        print(f"\nNext: read   lessons/{lesson}/README.md\n"
              f"      see    ./course run {number}\n"
              f"      edit   lessons/{source_of(lesson)}\n"
              f"      check  ./course check {number}\n"
              f"      stuck? ./course hint {number}")
        return
    print("\nEvery case passes. Compare: ./course diff 1 shows one way to write lesson 1.")

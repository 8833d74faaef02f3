"""Writes what a class has reached: for instructors, students and learning platforms."""

import csv
import json
import xml.etree.ElementTree as ElementTree

from project import lessons
from run_case import details, figure_line, reasons
from table import points, title


class Grade:
    """What one submission has reached: lesson -> records, and remarks on what was handed in."""

    def __init__(self, name, records, remarks):
        self.name, self.records, self.remarks = name, records, remarks

    def points(self, lesson):
        """(reached, to be had)"""
        return points(self.records[lesson])[:2]

    def total(self, weights):
        """Reached of 100, where each lesson counts by its weight and not by its number of cases."""
        whole = sum(weights[lesson] for lesson in self.records)
        reached = sum(weights[lesson] * self.points(lesson)[0] / max(1, self.points(lesson)[1]) for lesson in self.records)
        return 100 * reached / whole if whole else 0.0


def write_csv(path, grades, weights):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        present = list(grades[0].records) if grades else lessons()
        writer.writerow(["submission"] + [f"{lesson} (of {grades[0].points(lesson)[1]})" if grades else lesson for lesson in present]
                        + ["total (of 100)", "not judged", "remarks"])
        for grade in grades:
            unjudged = sum(points(records)[2] for records in grade.records.values())
            writer.writerow([grade.name] + [grade.points(lesson)[0] for lesson in present]
                            + [f"{grade.total(weights):.1f}", unjudged, "; ".join(grade.remarks)])


def case_lines(record):
    word = {"pass": "passed", "fail": "**failed**", "skip": "skipped"}.get(record["verdict"], "not judged")
    yield f"- {record['case']}: {word}, {record['points'] if record['verdict'] == 'pass' else 0} of {record['points']}"
    for figure in record.get("figures", []):
        yield f"  - {figure_line(figure)}"
    if record["verdict"] != "pass" and not record.get("compiler"):
        for line in "\n".join(details(record, "")).splitlines():
            yield f"  - {line}" if not line.startswith("|") else f"    `{line[2:]}`"


def report(grade, weights, where):
    """One submission's report, as Markdown."""
    lines = [f"# {grade.name}", "", f"{grade.total(weights):.1f} of 100 points. Graded on {where}.", ""]
    lines += [f"- {remark}" for remark in grade.remarks] + ([""] if grade.remarks else [])
    for lesson, records in grade.records.items():
        reached, to_be_had = grade.points(lesson)
        lines += [f"## {title(lesson)}: {reached} of {to_be_had} points", ""]
        compiler = next((record["compiler"] for record in records if record.get("compiler")), None)
        if compiler:
            lines += ["It could not be built:", "", "```", compiler, "```", ""]
            continue
        for record in records:
            lines += case_lines(record)
        lines.append("")
    return "\n".join(lines)


def all_cases(grade):
    for lesson, records in grade.records.items():
        for record in records:
            yield lesson, record


def why(record):
    """For platforms that show one text a case."""
    texts = [figure_line(figure) for figure in record.get("figures", [])]
    if record["verdict"] != "pass":
        texts += reasons(record) + ([record["meaning"]] if record.get("meaning") else [])
    return "\n".join(texts)


def score(record):
    return record["points"] if record["verdict"] == "pass" else 0


def gradescope(grade, where):
    return {
        "output": f"Graded on {where}.",
        "tests": [{"name": f"{title(lesson)}: {record['case']}", "score": score(record), "max_score": record["points"],
                   "status": "passed" if record["verdict"] == "pass" else "failed", "output": why(record)}
                  for lesson, record in all_cases(grade)],
    }


def prairielearn(grade, where):
    to_be_had = sum(record["points"] for _, record in all_cases(grade))
    return {
        "gradable": True,
        "score": sum(score(record) for _, record in all_cases(grade)) / max(1, to_be_had),
        "message": f"Graded on {where}.",
        "tests": [{"name": f"{title(lesson)}: {record['case']}", "points": score(record), "max_points": record["points"],
                   "output": why(record)} for lesson, record in all_cases(grade)],
    }


def github_classroom(grade, where):
    """As the autograding reporter reads a runner's result."""
    return {
        "version": 1,
        "status": "pass" if all(record["verdict"] == "pass" for _, record in all_cases(grade)) else "fail",
        "max_score": sum(record["points"] for _, record in all_cases(grade)),
        "tests": [{"name": f"{title(lesson)}: {record['case']}", "status": "pass" if record["verdict"] == "pass" else "fail",
                   "score": score(record), "message": why(record) or f"Graded on {where}."}
                  for lesson, record in all_cases(grade)],
    }


PLATFORMS = {"gradescope": gradescope, "prairielearn": prairielearn, "github-classroom": github_classroom}


def printable(text):
    """Without what XML does not allow."""
    return "".join(char for char in text if char in "\n\t" or ord(char) >= 32)


def junit(grades):
    root = ElementTree.Element("testsuites")
    for grade in grades:
        for lesson, records in grade.records.items():
            suite = ElementTree.SubElement(root, "testsuite", name=f"{grade.name}: {lesson}", tests=str(len(records)))
            for record in records:
                case = ElementTree.SubElement(suite, "testcase", classname=f"{grade.name}.{lesson}", name=record["case"],
                                              time=str(record.get("seconds", 0)))
                kind = {"fail": "failure", "skip": "skipped"}.get(record["verdict"], None if record["verdict"] == "pass" else "error")
                if kind:
                    message = printable((reasons(record) or [""])[0][:200])
                    ElementTree.SubElement(case, kind, message=message).text = printable(why(record))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True)


def write_all(folder, grades, weights, where):
    """Everything, into `folder`."""
    (folder / "reports").mkdir(parents=True, exist_ok=True)
    write_csv(folder / "gradebook.csv", grades, weights)
    (folder / "junit.xml").write_text(junit(grades), encoding="utf-8")
    for grade in grades:
        (folder / "reports" / f"{grade.name}.md").write_text(report(grade, weights, where), encoding="utf-8")
        for platform, convert in PLATFORMS.items():
            path = folder / platform / f"{grade.name}.json"
            path.parent.mkdir(exist_ok=True)
            path.write_text(json.dumps(convert(grade, where), indent=1), encoding="utf-8")

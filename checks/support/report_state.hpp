/// What the running case has recorded so far; report.cpp fills it, main.cpp sends it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace check {

struct Figure {
    std::string name;
    std::string unit;
    double value = 0;
    double reference = 0;
    double limit = 0; ///< as a share of the reference
    bool more_is_better = true;
    bool ok = false;
    std::string note; ///< why it is not ok, when that is not plain from the numbers
};

/// Begins the text of a failure that a figure in the record shows already.
inline constexpr const char* figure_mark = "figure: ";

struct Explanation {
    std::string meaning;
    std::string where;
};

struct Failure {
    std::string place; ///< file:line
    std::string text;
};

struct ReportState {
    std::vector<Figure> figures;
    std::vector<Failure> failures;
    Explanation explanation;               ///< of what comes next
    std::optional<Explanation> of_failure; ///< that was in force at the first failure
    std::size_t assertions = 0;
    bool seed_used = false;
};

ReportState& report_state();

enum class Verdict { pass, fail, skip, inconclusive, error };

/// Sends the completion record to whoever runs this case, and returns the process's exit code:
/// 0 pass, 1 fail, 77 skip, 99 inconclusive or error.
int finish(Verdict verdict, const std::string& reason);

} // namespace check

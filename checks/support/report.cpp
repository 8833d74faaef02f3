#include "support/report.hpp"

#include "support/catch.hpp"
#include "support/report_state.hpp"

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <utility>

namespace check {

namespace {

void record(Figure figure) {
    if (figure.more_is_better && figure.value > believable_share * figure.reference) {
        figure.ok = false;
        figure.note = "faster than this path can be: not all of the work was done when it was "
                      "said to be";
    }
    std::ostringstream text;
    text.precision(4);
    text << figure_mark << figure.name << ' ' << figure.value << ' ' << figure.unit << " of "
         << figure.reference << ", " << (figure.more_is_better ? "needs " : "at most ")
         << figure.limit * 100 << " %";
    if (!figure.note.empty()) text << "; " << figure.note;
    const bool ok = figure.ok;
    report_state().figures.push_back(std::move(figure));
    expect(ok, text.str());
}

/// Ends the process with `verdict`, unless an assertion has failed before.
[[noreturn]] void end(Verdict verdict, const std::string& reason) {
    if (!report_state().failures.empty()) verdict = Verdict::fail;
    const int code = finish(verdict, reason);
    std::fflush(nullptr);
    std::_Exit(code);
}

} // namespace

ReportState& report_state() {
    static ReportState state;
    return state;
}

void explain(std::string what_it_means, std::string where_to_read) {
    report_state().explanation = {std::move(what_it_means), std::move(where_to_read)};
}

bool expect(bool ok, const std::string& message) {
    if (ok) {
        SUCCEED();
    } else {
        FAIL_CHECK(message);
    }
    return ok;
}

void figure(const std::string& name, double value, double reference, const std::string& unit,
            double needs_share) {
    record({name, unit, value, reference, needs_share, true, value >= needs_share * reference, {}});
}

void figure_at_most(const std::string& name, double value, double reference,
                    const std::string& unit, double at_most_share) {
    record({name,
            unit,
            value,
            reference,
            at_most_share,
            false,
            value <= at_most_share * reference,
            {}});
}

void skip(const std::string& reason) {
    end(Verdict::skip, reason);
}

void inconclusive(const std::string& reason) {
    end(Verdict::inconclusive, reason);
}

} // namespace check

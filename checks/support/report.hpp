/// What a check says beside its verdict. All of it ends up in the report of the running case.
#pragma once

#include <string>

namespace check {

/// Says what a failure of the running case means, and where to read about it. Call it before the
/// assertions that it explains; the last call before a failure counts. Not shown when the case
/// passes.
void explain(std::string what_it_means, std::string where_to_read);

/// An assertion with a sentence instead of an expression: fails the case unless `ok`, and goes on.
/// Returns `ok`.
bool expect(bool ok, const std::string& message);

/// Largest share of a reference rate that is believed: beyond it, work was left out of the timing.
inline constexpr double believable_share = 1.25;

/// Records a rate (more is better), prints it beside its reference, and fails the case unless
/// value >= needs_share * reference. Fails it too when value is beyond believable_share *
/// reference. `name` says what was measured, such as "upload"; both figures are in `unit`.
void figure(const std::string& name, double value, double reference, const std::string& unit,
            double needs_share);

/// As figure(), for a quantity of which less is better, such as a time or a size: fails the case
/// unless value <= at_most_share * reference.
void figure_at_most(const std::string& name, double value, double reference,
                    const std::string& unit, double at_most_share);

/// Ends the process: this machine cannot show what the case is about. `reason` says what it lacks.
/// A case that has failed already stays failed.
[[noreturn]] void skip(const std::string& reason);

/// Ends the process: the measurement itself cannot be trusted, so the case is asked again.
/// A case that has failed already stays failed.
[[noreturn]] void inconclusive(const std::string& reason);

} // namespace check

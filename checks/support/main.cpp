// The program of a check: one process runs one case and sends a completion record.
//
//   case --case NAME   runs this case; exit code 0 pass, 1 fail, 77 skip, 99 inconclusive or error
//   case --cases       lists the names, one a line
//   case ...           anything else is Catch2's own command line
//
// Whoever wants the record gives a socket in CHECK_RECORD_FD and has written a secret word to it.
// The word is read before any code of the submission runs, and comes back with the record. Nothing
// that the submission prints, and no exit code of its own, can be taken for a verdict.
#define CATCH_CONFIG_RUNNER
#include "support/catch.hpp"

#include "support/call_log.hpp"
#include "support/devices.hpp"
#include "support/pattern.hpp"
#include "support/report_state.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace {

constexpr int exit_skip = 77;
constexpr int exit_error = 99;
constexpr int exit_record_lost = 98;

struct Channel {
    int socket = -1;
    char secret[128] = "";
};

Channel channel;

/// Runs before constructors of the submission's globals, and before anything it starts.
__attribute__((constructor(101))) void open_channel() {
    const char* number = std::getenv("CHECK_RECORD_FD");
    if (number == nullptr) return;
    channel.socket = std::atoi(number);
    fcntl(channel.socket, F_SETFD, FD_CLOEXEC);
    const ssize_t got = read(channel.socket, channel.secret, sizeof channel.secret - 1);
    channel.secret[got > 0 ? got : 0] = '\0';
    unsetenv("CHECK_RECORD_FD");
}

const char* word(check::Verdict verdict) {
    switch (verdict) {
    case check::Verdict::pass:
        return "pass";
    case check::Verdict::fail:
        return "fail";
    case check::Verdict::skip:
        return "skip";
    case check::Verdict::inconclusive:
        return "inconclusive";
    case check::Verdict::error:
        break;
    }
    return "error";
}

int exit_code(check::Verdict verdict) {
    switch (verdict) {
    case check::Verdict::pass:
        return 0;
    case check::Verdict::fail:
        return 1;
    case check::Verdict::skip:
        return exit_skip;
    default:
        return exit_error;
    }
}

std::string json_string(std::string_view text) {
    std::string json = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') {
            json += '\\';
            json += c;
        } else if (static_cast<unsigned char>(c) < 0x20) {
            char code[8];
            std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(c));
            json += code;
        } else {
            json += c;
        }
    }
    return json + '"';
}

std::string number(double value) {
    if (value != value || value > 1e300 || value < -1e300) return "null";
    char text[32];
    std::snprintf(text, sizeof text, "%.9g", value);
    return text;
}

std::string to_json(const check::Figure& figure) {
    return "{\"name\":" + json_string(figure.name) + ",\"unit\":" + json_string(figure.unit) +
           ",\"value\":" + number(figure.value) + ",\"reference\":" + number(figure.reference) +
           ",\"limit\":" + number(figure.limit) +
           ",\"more_is_better\":" + (figure.more_is_better ? "true" : "false") +
           ",\"ok\":" + (figure.ok ? "true" : "false") + ",\"note\":" + json_string(figure.note) +
           "}";
}

std::string to_json(const check::Failure& failure) {
    return "{\"place\":" + json_string(failure.place) + ",\"text\":" + json_string(failure.text) +
           "}";
}

template <class Item> std::string to_json(const std::vector<Item>& items) {
    std::string json = "[";
    for (const Item& item : items) {
        if (json.size() > 1) json += ',';
        json += to_json(item);
    }
    return json + ']';
}

std::string to_json(check::Verdict verdict, const std::string& reason) {
    const check::ReportState& state = check::report_state();
    const check::Explanation explanation = state.of_failure.value_or(check::Explanation{});
    std::string json =
        "{\"secret\":" + json_string(channel.secret) +
        ",\"verdict\":" + json_string(word(verdict)) + ",\"reason\":" + json_string(reason) +
        ",\"assertions\":" + std::to_string(state.assertions) +
        ",\"meaning\":" + json_string(explanation.meaning) +
        ",\"where\":" + json_string(explanation.where) + ",\"figures\":" + to_json(state.figures) +
        ",\"failures\":" + to_json(state.failures);
    if (state.seed_used) json += ",\"seed\":" + json_string(std::to_string(check::seed()));
    return json + "}\n";
}

bool send_all(int socket, std::string_view text) {
    while (!text.empty()) {
        const ssize_t sent = send(socket, text.data(), text.size(), MSG_NOSIGNAL);
        if (sent <= 0) return false;
        text.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
}

#if defined(CATCH_VERSION_MAJOR) && CATCH_VERSION_MAJOR >= 3
using ListenerBase = Catch::EventListenerBase;
using AssertionEnded = void;
#else
using ListenerBase = Catch::TestEventListenerBase;
using AssertionEnded = bool;
#endif

std::string text_of(const Catch::AssertionStats& stats) {
    const Catch::AssertionResult& result = stats.assertionResult;
    std::string text;
    if (result.hasExpression()) text = std::string(result.getExpandedExpression());
    // What Catch2 says of an exception between two assertions.
    if (text.rfind("{Unknown expression", 0) == 0) text.clear();
    if (result.hasMessage()) {
        if (!text.empty()) text += ": ";
        text += std::string(result.getMessage());
    }
    for (const Catch::MessageInfo& info : stats.infoMessages) {
        if (info.type == Catch::ResultWas::Info) text += "; " + info.message;
    }
    return text;
}

/// From the tag [gpus:N]; 1 without it.
int gpus_needed(const std::string& tags) {
    constexpr std::string_view tag = "[gpus:";
    const std::size_t found = tags.find(tag);
    return found == std::string::npos ? 1 : std::atoi(tags.c_str() + found + tag.size());
}

/// Skips a case for which the node has too few GPUs, and keeps what the record needs of every
/// assertion.
class Recorder : public ListenerBase {
public:
#if defined(CATCH_VERSION_MAJOR) && CATCH_VERSION_MAJOR >= 3
    explicit Recorder(const Catch::IConfig* config) : ListenerBase(config) {
        // Else Catch2 3 tells its listeners of failed assertions only, and none could be counted.
        m_preferences.shouldReportAllAssertions = true;
    }
#else
    using ListenerBase::ListenerBase;
#endif

    void testCaseStarting(const Catch::TestCaseInfo& info) override {
        check::require_devices(gpus_needed(info.tagsAsString()));
    }

    void assertionStarting(const Catch::AssertionInfo&) override {}

    AssertionEnded assertionEnded(const Catch::AssertionStats& stats) override {
        check::ReportState& state = check::report_state();
        ++state.assertions;
        if (stats.assertionResult.isOk()) return AssertionEnded(true);
        const Catch::SourceLineInfo place = stats.assertionResult.getSourceInfo();
        state.failures.push_back(
            {std::string(place.file) + ":" + std::to_string(place.line), text_of(stats)});
        if (!state.of_failure) state.of_failure = state.explanation;
        return AssertionEnded(true);
    }
};

/// Catch2 reads a name as a pattern; this one stands for exactly this name.
std::string pattern_for(std::string_view name) {
    std::string pattern;
    for (const char c : name) {
        if (c == '\\' || c == ',' || c == '[' || c == ']' || c == '"' || c == '*') pattern += '\\';
        pattern += c;
    }
    return pattern;
}

/// A failure that no assertion of the case is about. It goes first: the others may follow from it.
void add_failure(const std::string& text, const std::string& meaning) {
    check::ReportState& state = check::report_state();
    state.failures.insert(state.failures.begin(), {"after the case", text});
    state.of_failure = check::Explanation{meaning, ""};
}

/// Fails the case when the submission has left a GPU that nobody in this process can use as before.
void look_for_ruins() {
    if (check::device_was_reset())
        add_failure("cudaDeviceReset() was called",
                    "The reset takes from the whole process what it has on the GPU, the caller's "
                    "memory, streams and events too. Free what you made, and nothing else.");
    // An error that comes twice stays: the GPU's context is lost.
    cudaDeviceSynchronize();
    const cudaError_t error = cudaDeviceSynchronize();
    if (error != cudaSuccess)
        add_failure("the GPU is left unusable: " + std::string(cudaGetErrorName(error)) + ", " +
                        cudaGetErrorString(error),
                    "A kernel did what it must not do, and from then on every call of this process "
                    "that needs the GPU fails.");
}

int run_case(Catch::Session& session, const std::string& name) {
    auto& config = session.configData();
    config.testsOrTags = {pattern_for(name)};
#if defined(CATCH_VERSION_MAJOR) && CATCH_VERSION_MAJOR >= 3
    config.allowZeroTests = true; // said in the record instead
    if (channel.socket >= 0) config.defaultOutputFilename = "/dev/null";
#else
    config.reporterName = "compact";
    if (channel.socket >= 0) config.outputFilename = "/dev/null";
#endif
    const int code = session.run();
    const bool is_graded = channel.socket >= 0; // conformance cases ruin GPUs on purpose
    if (is_graded && check::report_state().assertions > 0) look_for_ruins();

    using check::Verdict;
    const check::ReportState& state = check::report_state();
    if (!state.failures.empty()) return check::finish(Verdict::fail, "");
    if (state.assertions == 0)
        return check::finish(Verdict::error, "no assertion ran: is there a case of this name?");
    if (code != 0)
        return check::finish(Verdict::error, "Catch2 ended with code " + std::to_string(code));
    return check::finish(Verdict::pass, "");
}

int list_cases(Catch::Session& session) {
    auto& config = session.configData();
#if defined(CATCH_VERSION_MAJOR) && CATCH_VERSION_MAJOR >= 3
    config.listTests = true;
    config.verbosity = Catch::Verbosity::Quiet;
    session.run();
#else
    config.listTestNamesOnly = true;
    session.run(); // ends with the number of cases
#endif
    return 0;
}

} // namespace

int check::finish(Verdict verdict, const std::string& reason) {
    if (channel.socket >= 0) {
        // A line break in front: what the submission may have written there ends with it.
        if (!send_all(channel.socket, '\n' + to_json(verdict, reason))) _exit(exit_record_lost);
        close(channel.socket);
        channel.socket = -1;
    } else {
        std::printf("%s%s%s\n", word(verdict), reason.empty() ? "" : ": ", reason.c_str());
    }
    return exit_code(verdict);
}

CATCH_REGISTER_LISTENER(Recorder)

int main(int argc, char** argv) {
    Catch::Session session;
    const std::string_view option = argc > 1 ? argv[1] : "";
    if (option == "--cases") return list_cases(session);
    if (option == "--case" && argc == 3) return run_case(session, argv[2]);
    return session.run(argc, argv) == 0 ? 0 : 1;
}

// Any bytes as a PTX text: parsed, and all its kernels decoded.
#include "ptx/ptx.hpp"

#include <cstdint>
#include <string>

namespace {

constexpr std::string_view entry = ".entry";
constexpr std::string_view blank = " \t\n";

void decode_all(const sim::ptx::Module& module, std::string_view text) {
    for (std::size_t at = text.find(entry); at != text.npos; at = text.find(entry, at + 1)) {
        const std::size_t begin = text.find_first_not_of(blank, at + entry.size());
        if (begin == text.npos) return;
        const std::size_t end = text.find_first_of("( \t\n{;", begin);
        const auto* kernel = module.kernel(text.substr(begin, end - begin));
        if (!kernel) continue;
        try {
            kernel->registers();
        } catch (const sim::ptx::Error&) {
        }
    }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string text(reinterpret_cast<const char*>(data), size);
    try {
        decode_all(*sim::ptx::Module::parse(text), text);
    } catch (const sim::ptx::Error&) {
    }
    return 0;
}

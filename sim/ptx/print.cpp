// printf and assert of a kernel.
#include "ptx/group.hpp"
#include "ptx/handlers.hpp"

#include <cstdio>
#include <cstring>

namespace sim::ptx {
namespace {

constexpr std::size_t longest_text = std::size_t{1} << 16;
constexpr int assertion = 710;

/// Reads memory of one lane as instructions of the kernel would.
class LaneMemory {
public:
    LaneMemory(const Instruction& in, Lanes& lanes, std::uint32_t lane)
        : in_(in), lanes_(lanes), lane_(lane) {
        in_.space = Space::generic;
        in_.slot = static_cast<std::uint32_t>(lanes.group->around->slots.size() - 1);
        in_.write = false;
    }

    template <class T> T read(std::uint64_t address) {
        in_.access_bytes = sizeof(T);
        std::uint8_t kind = 0;
        T value;
        std::memcpy(&value, find_place(in_, lanes_, lane_, address, kind), sizeof value);
        return value;
    }

    std::string text(std::uint64_t address) {
        std::string result;
        for (char c = read<char>(address); c != '\0' && result.size() < longest_text;
             c = read<char>(address + result.size()))
            result += c;
        return result;
    }

private:
    Instruction in_;
    Lanes& lanes_;
    std::uint32_t lane_;
};

template <class T> std::string formatted(const std::string& directive, T value) {
    const int length = std::snprintf(nullptr, 0, directive.c_str(), value);
    if (length < 0) return {};
    std::string text(static_cast<std::size_t>(length) + 1, '\0');
    std::snprintf(text.data(), text.size(), directive.c_str(), value);
    text.pop_back();
    return text;
}

/// One printf of one lane. Arguments lie behind each other, each at its alignment.
class Printer {
public:
    Printer(LaneMemory& memory, std::uint64_t arguments) : memory_(memory), next_(arguments) {}

    std::string print(const std::string& format) {
        std::string out;
        for (std::size_t i = 0; i < format.size();) {
            if (format[i] != '%') {
                out += format[i++];
                continue;
            }
            if (i + 1 < format.size() && format[i + 1] == '%') {
                out += '%';
                i += 2;
                continue;
            }
            out += directive(format, i);
        }
        return out;
    }

private:
    template <class T> T argument() {
        next_ = aligned(next_, sizeof(T));
        const T value = memory_.read<T>(next_);
        next_ += sizeof(T);
        return value;
    }

    std::string directive(const std::string& format, std::size_t& i) {
        const std::size_t begin = i++;
        std::string flags = "%";
        while (i < format.size() && std::strchr("-+ #0.123456789*", format[i]) != nullptr) {
            if (format[i] == '*')
                flags += std::to_string(argument<std::int32_t>());
            else
                flags += format[i];
            ++i;
        }
        std::string length;
        while (i < format.size() && std::strchr("hlLjzt", format[i]) != nullptr)
            length += format[i++];
        if (i >= format.size()) return format.substr(begin);
        const char kind = format[i++];
        return conversion(flags, length, kind, format.substr(begin, i - begin));
    }

    std::string conversion(const std::string& flags, const std::string& length, char kind,
                           const std::string& as_written) {
        const bool wide = length.find_first_of("ljzt") != std::string::npos;
        switch (kind) {
        case 'd':
        case 'i': {
            const long long value =
                wide ? argument<std::int64_t>() : narrowed(length, argument<std::int32_t>());
            return formatted(flags + "lld", value);
        }
        case 'u':
        case 'o':
        case 'x':
        case 'X': {
            const unsigned long long value =
                wide ? argument<std::uint64_t>() : narrowed(length, argument<std::uint32_t>());
            return formatted(flags + "ll" + kind, value);
        }
        case 'c':
            return formatted(flags + "c", argument<std::int32_t>());
        case 'f':
        case 'F':
        case 'e':
        case 'E':
        case 'g':
        case 'G':
        case 'a':
        case 'A':
            return formatted(flags + kind, argument<double>());
        case 'p': {
            const auto value = argument<std::uint64_t>();
            return formatted(flags + "p", reinterpret_cast<void*>(value));
        }
        case 's': {
            const auto address = argument<std::uint64_t>();
            return formatted(flags + "s", address == 0 ? "(null)" : memory_.text(address).c_str());
        }
        default:
            return as_written;
        }
    }

    template <class T> static T narrowed(const std::string& length, T value) {
        if (length == "hh")
            return static_cast<std::conditional_t<std::is_signed_v<T>, std::int8_t, std::uint8_t>>(
                value);
        if (length == "h")
            return static_cast<
                std::conditional_t<std::is_signed_v<T>, std::int16_t, std::uint16_t>>(value);
        return value;
    }

    LaneMemory& memory_;
    std::uint64_t next_;
};

} // namespace

void print_formatted(const Instruction& in, Lanes& lanes) {
    for (std::uint32_t i = lanes.low; i < lanes.high; ++i) {
        if (!lanes.has(i)) continue;
        const std::uint64_t format = array_of<std::uint64_t>(lanes, in.operand[1])[i];
        const std::uint64_t arguments = array_of<std::uint64_t>(lanes, in.operand[2])[i];
        LaneMemory memory(in, lanes, i);
        const std::string text = Printer(memory, arguments).print(memory.text(format));
        if (const auto& print = lanes.group->around->launch->print) print(text);
        array_of<std::uint64_t>(lanes, in.operand[0])[i] = 1;
    }
}

/// The message that CUDA prints, once for every lane that fails.
void assertion_failed(const Instruction& in, Lanes& lanes) {
    std::uint32_t first = group_lanes;
    std::string condition;
    for (std::uint32_t i = lanes.low; i < lanes.high; ++i) {
        if (!lanes.has(i)) continue;
        LaneMemory memory(in, lanes, i);
        const auto text = [&](std::size_t operand) {
            return memory.text(array_of<std::uint64_t>(lanes, in.operand[operand])[i]);
        };
        const auto line =
            static_cast<std::uint32_t>(array_of<std::uint64_t>(lanes, in.operand[2])[i]);
        const Dim3 block = lanes.group->block->index;
        const Dim3 thread = thread_index(*lanes.group, i);
        if (first == group_lanes) {
            first = i;
            condition = text(0);
        }
        std::fprintf(stderr,
                     "%s:%u: %s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%s` failed.\n",
                     text(1).c_str(), line, text(3).c_str(), block.x, block.y, block.z, thread.x,
                     thread.y, thread.z, text(0).c_str());
    }
    stop(in, lanes, first, assertion, "The assertion `" + condition + "` failed.");
}

} // namespace sim::ptx

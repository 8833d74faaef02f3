// Fat binaries and texts, whole and damaged.
#include "both.hpp"

#include <lz4.h>
#include <zstd.h>

using sim::ptx::Error;

namespace {

struct Wrapper {
    std::uint32_t magic = 0x466243b1;
    std::uint32_t version = 1;
    const void* data = nullptr;
    const void* last = nullptr;
};

void append(std::string& out, const void* data, std::size_t bytes) {
    out.append(static_cast<const char*>(data), bytes);
}
template <class T> void append(std::string& out, T value) {
    append(out, &value, sizeof value);
}

enum class Packing { none, zstd, lz4 };

/// An entry as nvcc writes it; kind 1 is PTX.
std::string entry(const std::string& text, unsigned architecture, Packing packing,
                  std::uint16_t kind = 1, std::uint32_t header_bytes = 80) {
    std::string payload = text + std::string(1, '\0');
    std::uint64_t flags = 0x11;
    const std::uint64_t plain_bytes = payload.size();
    if (packing == Packing::zstd) {
        std::string packed(ZSTD_compressBound(plain_bytes), '\0');
        packed.resize(ZSTD_compress(packed.data(), packed.size(), payload.data(), plain_bytes, 3));
        payload = packed;
        flags |= 0x8000;
    }
    if (packing == Packing::lz4) {
        std::string packed(LZ4_compressBound(static_cast<int>(plain_bytes)), '\0');
        packed.resize(LZ4_compress_default(payload.data(), packed.data(),
                                           static_cast<int>(plain_bytes),
                                           static_cast<int>(packed.size())));
        payload = packed;
        flags |= 0x2000;
    }
    const auto packed_bytes = static_cast<std::uint32_t>(payload.size());
    payload.resize((payload.size() + 7) / 8 * 8);
    std::string out;
    append<std::uint16_t>(out, kind);
    append<std::uint16_t>(out, 0x101);
    append<std::uint32_t>(out, header_bytes);
    append<std::uint64_t>(out, payload.size());
    append<std::uint32_t>(out, packing == Packing::none ? 0 : packed_bytes);
    append<std::uint32_t>(out, 0);
    append<std::uint16_t>(out, 0);
    append<std::uint16_t>(out, 9);
    append<std::uint32_t>(out, architecture);
    append<std::uint32_t>(out, 0);
    append<std::uint32_t>(out, 0);
    append<std::uint64_t>(out, flags);
    append<std::uint64_t>(out, 0);
    append<std::uint64_t>(out, packing == Packing::none ? 0 : plain_bytes);
    out.resize(header_bytes);
    return out + payload;
}

std::string binary(const std::string& entries) {
    std::string out;
    append<std::uint32_t>(out, 0xBA55ED50);
    append<std::uint16_t>(out, 1);
    append<std::uint16_t>(out, 16);
    append<std::uint64_t>(out, entries.size());
    return out + entries;
}

std::string found_in(const std::string& fat_binary) {
    Wrapper wrapper;
    wrapper.data = fat_binary.data();
    return sim::ptx::find_ptx(&wrapper);
}

} // namespace

TEST_CASE("PTX is found in a fat binary however it is packed") {
    const std::string text = test::read_kernels("kernels", "75");
    const Packing packing = GENERATE(Packing::none, Packing::zstd, Packing::lz4);
    const std::uint32_t header = GENERATE(80u, 96u, 112u);
    CHECK(found_in(binary(entry(text, 75, packing, 1, header))) == text);
}

TEST_CASE("the PTX of the highest architecture is taken, code for one GPU is not") {
    const std::string entries = entry("machine code", 90, Packing::zstd, 2, 64) +
                                entry("old", 75, Packing::none) + entry("new", 100, Packing::lz4) +
                                entry("middle", 80, Packing::zstd);
    CHECK(found_in(binary(entries)) == "new");
}

TEST_CASE("texts of separately compiled files come together") {
    const std::string first = binary(entry("first", 75, Packing::zstd));
    const std::string second =
        binary(entry("code", 90, Packing::none, 2, 64) + entry("second", 75, Packing::none));
    const std::string none = binary("");
    const void* linked[] = {first.data(), second.data(), nullptr};
    Wrapper wrapper;
    wrapper.version = 2;
    wrapper.data = none.data();
    wrapper.last = linked;
    CHECK(sim::ptx::find_ptx(&wrapper) == "first\nsecond");
}

TEST_CASE("a program without PTX is told which flags bring it") {
    try {
        found_in(binary(entry("code", 80, Packing::none, 2, 64)));
        FAIL("found");
    } catch (const Error& error) {
        CHECK(std::string(error.what()).find("-arch=compute_75") != std::string::npos);
    }
}

TEST_CASE("damaged fat binaries are errors") {
    CHECK_THROWS_AS(sim::ptx::find_ptx(nullptr), Error);
    Wrapper wrapper;
    wrapper.magic = 1;
    CHECK_THROWS_AS(sim::ptx::find_ptx(&wrapper), Error);
    wrapper = {};
    wrapper.version = 3;
    CHECK_THROWS_AS(sim::ptx::find_ptx(&wrapper), Error);

    const Packing packing = GENERATE(Packing::none, Packing::zstd, Packing::lz4);
    const std::string text(3000, 'x');
    const std::string whole = binary(entry(text, 75, packing));
    // every byte of the headers wrong in turn: an answer or an error, nothing worse
    for (std::size_t at = 0; at < 96; ++at)
        for (const int change : {0x01, 0x80, 0xff}) {
            std::string damaged = whole;
            damaged[at] = static_cast<char>(damaged[at] ^ change);
            // the length of the whole is all that tells where the memory ends
            if (at >= 8 && at < 16) continue;
            try {
                found_in(damaged);
            } catch (const Error&) {
            }
        }
    // cut short: the length says so
    for (std::size_t length = 16; length < whole.size(); length += 7) {
        std::string cut = whole.substr(0, length);
        const std::uint64_t payload = length - 16;
        std::memcpy(cut.data() + 8, &payload, sizeof payload);
        CHECK_THROWS_AS(found_in(cut), Error);
    }
}

TEST_CASE("a text cut anywhere is an error or a shorter module") {
    const std::string architecture = GENERATE(as<std::string>{}, "75", "100");
    const std::string text = test::read_kernels("small", architecture);
    unsigned errors = 0;
    for (std::size_t length = 0; length < text.size(); ++length) {
        try {
            const auto module = sim::ptx::Module::parse(text.substr(0, length));
            for (const char* name : {"_Z5firstPfi", "_Z6secondPi"})
                if (const auto* kernel = module->kernel(name)) kernel->registers();
        } catch (const Error&) {
            ++errors;
        }
    }
    CHECK(errors > 0);
    CHECK(sim::ptx::Module::parse(text)->kernel("_Z5firstPfi") != nullptr);
}

TEST_CASE("a text with a changed character is an error or another module") {
    const std::string text = test::read_kernels("small", "75");
    for (std::size_t at = 0; at < text.size(); ++at) {
        for (const char other : {';', '{', '}', '9', '%', '.', '"', ' '}) {
            std::string damaged = text;
            damaged[at] = other;
            try {
                const auto module = sim::ptx::Module::parse(damaged);
                for (const char* name : {"_Z5firstPfi", "_Z6secondPi"})
                    if (const auto* kernel = module->kernel(name)) kernel->registers();
            } catch (const Error&) {
            }
        }
    }
    SUCCEED("no crash");
}

TEST_CASE("a value that is larger than its variable is an error") {
    const std::string head = ".version 8.0\n.target sm_75\n.address_size 64\n.global ";
    CHECK_THROWS_AS(sim::ptx::Module::parse(head + ".align 4 .b8 v[1] = {0.5};\n"), Error);
    CHECK_THROWS_AS(sim::ptx::Module::parse(head + ".b32 v = 0d3ff0000000000000;\n"), Error);
    CHECK_NOTHROW(sim::ptx::Module::parse(head + ".f32 v = 0d3ff0000000000000;\n"));
    CHECK_NOTHROW(sim::ptx::Module::parse(head + ".b64 v = 0d3ff0000000000000;\n"));
}

TEST_CASE("functions and variables of another file are found by name") {
    const std::string first = ".version 8.0\n.target sm_75\n.address_size 64\n"
                              ".extern .func (.param .b32 result) triple(.param .b32 x);\n"
                              ".extern .global .align 4 .u32 offset;\n"
                              ".global .align 4 .u32 own = 1;\n"
                              ".visible .entry linked(.param .u64 p)\n{\n"
                              ".reg .b32 %r<5>;\n.reg .b64 %rd<2>;\n"
                              "ld.param.u64 %rd1, [p];\nld.global.u32 %r1, [offset];\n"
                              "{ .param .b32 param0;\nst.param.b32 [param0], %r1;\n"
                              ".param .b32 retval0;\ncall.uni (retval0), triple, (param0);\n"
                              "ld.param.b32 %r2, [retval0];\n}\n"
                              "ld.global.u32 %r3, [own];\nadd.u32 %r2, %r2, %r3;\n"
                              "st.global.u32 [%rd1], %r2;\nret;\n}\n";
    const std::string second =
        ".version 8.0\n.target sm_75\n.address_size 64\n"
        ".visible .global .align 4 .u32 offset = 14;\n"
        ".global .align 4 .u32 own = 1000;\n"
        ".visible .func (.param .b32 result) triple(.param .b32 x)\n{\n"
        ".reg .b32 %r<4>;\nld.param.u32 %r1, [x];\nld.global.u32 %r3, [own];\n"
        "mad.lo.u32 %r2, %r1, 3, %r3;\nst.param.b32 [result], %r2;\nret;\n}\n";
    test::Device device(first + "\n" + second);
    auto out = device.array<std::uint32_t>(1);
    device.run("linked", {{1}, {1}}, out);
    CHECK(out[0] == 14 * 3 + 1000 + 1);
}

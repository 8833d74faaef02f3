#include "both.hpp"

#include <cstdio>
#include <unistd.h>

using sim::ptx::Fault;

TEST_CASE("an illegal address is reported with all there is to know") {
    auto device = test::kernels_of_both();
    auto a = device.array<int>(64);
    const long long offset = 1 << 28;
    const Fault fault = device.fault("wild_write", {{3}, {64}}, a, offset);
    CHECK(fault.error == 700);
    CHECK(fault.kernel == "wild_write(int*, long long)");
    CHECK(fault.block.x == 0);
    CHECK(fault.thread.x == 5);
    CHECK(fault.address == a.address + (5 + offset) * 4);
    CHECK(fault.bytes == 4);
    CHECK(fault.write);
    CHECK(fault.instruction.find("st.global") == 0);
    CHECK(fault.location.find("kernels.cu:") != std::string::npos);
    CHECK_FALSE(fault.message.empty());
    // lanes before the one that failed may have written, later blocks have not run
    CHECK(a[63] == 0);
}

TEST_CASE("null is an illegal address, and so is the end of a buffer") {
    auto device = test::kernels_of_both();
    auto y = device.array<float>(100);
    Fault fault = device.fault("axpy", {{1}, {128}}, std::uint64_t{0}, y, 1.0f, 100);
    CHECK(fault.error == 700);
    CHECK(fault.address == 0);
    CHECK_FALSE(fault.write);
    auto x = device.array<float>(90);
    fault = device.fault("axpy", {{1}, {128}}, x, y, 1.0f, 100);
    CHECK(fault.error == 700);
    CHECK(fault.thread.x == 90);
    CHECK(fault.address == x.address + 360);
}

TEST_CASE("misaligned addresses") {
    auto device = test::kernels_of_both();
    auto a = device.array<char>(256);
    auto out = device.array<int>(64);
    const Fault fault = device.fault("misaligned", {{1}, {64}}, a, out);
    CHECK(fault.error == 716);
    CHECK(fault.thread.x == 9);
    CHECK(fault.address == a.address + 37);
    CHECK(device.fault("vectors", {{1}, {32}}, a.address + 8, out, out, out, a, out, out, out)
              .error == 716);
}

TEST_CASE("a trap ends the kernel") {
    auto device = test::kernels_of_both();
    auto out = device.array<int>(32);
    const Fault fault = device.fault("trapping", {{1}, {32}}, out);
    CHECK(fault.error == 719);
    CHECK(fault.thread.x == 3);
}

TEST_CASE("an index outside of shared memory") {
    auto device = test::kernels_of_both();
    auto out = device.array<int>(32);
    device.run("shared_overrun", {{1}, {32}}, out, 31);
    CHECK(out[5] == 1);
    const Fault fault = device.fault("shared_overrun", {{1}, {32}}, out, 32);
    CHECK(fault.error == 700);
    CHECK(fault.message.find("shared") != std::string::npos);
    CHECK(device.fault("shared_overrun", {{1}, {32}}, out, -1).error == 700);
}

TEST_CASE("endless recursion overflows the stack") {
    auto device = test::kernels_of_both();
    auto out = device.array<int>(32);
    const Fault fault = device.fault("deep_recursion", {{1}, {1}}, out, 1 << 20);
    CHECK(fault.error == 719);
    CHECK(fault.message.find("stack") != std::string::npos);
}

TEST_CASE("threads that wait at different barriers") {
    auto device = test::kernels_of_both();
    auto out = device.array<int>(1);
    const Fault fault = device.fault("lopsided_barrier", {{1}, {64}}, out);
    CHECK(fault.error == 702);
    CHECK(fault.instruction.find("bar.sync") == 0);
}

TEST_CASE("a failed assertion prints CUDA's message") {
    auto device = test::kernels_of_both();
    auto in = device.array<int>(64);
    in[40] = 7;
    std::FILE* file = std::tmpfile();
    REQUIRE(file != nullptr);
    const int before = dup(STDERR_FILENO);
    dup2(fileno(file), STDERR_FILENO);
    const Fault fault = device.fault("asserting", {{1}, {64}}, in);
    std::fflush(stderr);
    dup2(before, STDERR_FILENO);
    close(before);
    std::rewind(file);
    char text[512] = "";
    REQUIRE(std::fgets(text, sizeof text, file) != nullptr);
    std::fclose(file);
    CHECK(fault.error == 710);
    CHECK(fault.thread.x == 40);
    const std::string message = text;
    CHECK(message.find("kernels.cu:") != std::string::npos);
    CHECK(message.find("void asserting(const int *): block: [0,0,0], thread: [40,0,0] Assertion "
                       "`in[threadIdx.x] != 7` failed.\n") != std::string::npos);
}

namespace {

std::string with_body(const std::string& body) {
    return ".version 8.0\n.target sm_75\n.address_size 64\n"
           ".visible .entry broken(.param .u64 p)\n{\n.reg .b32 %r<9>;\n.reg .b64 %rd<9>;\n" +
           body +
           "\nret;\n}\n.visible .entry fine(.param .u64 p)\n{\n.reg .b32 %r<2>;\n.reg .b64 "
           "%rd<3>;\nld.param.u64 %rd1, [p];\nmov.u32 %r1, 5;\nst.global.u32 [%rd1], "
           "%r1;\nret;\n}\n";
}

} // namespace

TEST_CASE("an unknown instruction matters to the kernel that has it") {
    for (const std::string instruction :
         {"wgmma.fence.sync.aligned;", "add.s32.strange %r1, %r2, %r3;", "add.u32 %r1, %rd1, %r2;",
          "frobnicate %r1;", "mov.u32 %r1, %pm0;", "call nowhere;", "bra nowhere;",
          "ld.global.b128 %rd1, [%rd2];", "mul.lo.u64 %r1, %rd1, %rd2;"}) {
        CAPTURE(instruction);
        test::Device device(with_body(instruction));
        auto out = device.array<int>(1);
        device.run("fine", {{1}, {1}}, out);
        CHECK(out[0] == 5);
        try {
            device.start("broken", {{1}, {1}}, out);
            FAIL("accepted");
        } catch (const sim::ptx::Error& error) {
            const std::string text = error.what();
            CHECK(text.find("broken") != std::string::npos);
            const bool named = text.find(instruction) != std::string::npos ||
                               text.find("nowhere") != std::string::npos ||
                               text.find("bra") != std::string::npos ||
                               text.find(".b128") != std::string::npos;
            CHECK(named);
        }
    }
}

TEST_CASE("instructions that are written by hand") {
    const std::string text = with_body(R"(
        .reg .pred %p<4>;
        .reg .f32 half;
        ld.param.u64 %rd1, [p];
        mad.lo.s32 %r1, %ctaid.x, %ntid.x, %tid.x;
        mul.wide.u32 %rd2, %r1, 32;
        add.s64 %rd1, %rd1, %rd2;
        setp.lt.and.s32 %p1|%p2, %r1, 5, !%p3;
        setp.eq.u32 %p3, %r1, %r1;
        setp.lt.and.s32 %p1|%p2, %r1, 5, %p3;
        selp.b32 %r2, 10, 20, %p1;
        selp.b32 %r3, 30, 40, %p2;
        {
            .reg .b32 %r<3>;
            mov.b32 %r1, 77;
            mov.b32 %r2, 88;
            st.global.v2.u32 [%rd1+8], {%r1, %r2};
        }
        lop3.b32 %r4, %r1, %r2, %r3, 0x96;
        mov.f32 half, 0.5;
        @%p1 mov.f32 half, 0f40000000;
        st.global.v2.u32 [%rd1], {%r2, %r3};
        st.global.u32 [%rd1+16], %r4;
        st.global.f32 [%rd1+20], half;
        bfe.s32 %r5, 0x00f00000, 20, 4;
        st.global.u32 [%rd1+24], %r5;
        prmt.b32.rc8 %r6, 0x44332211, 0, 2;
        st.global.u32 [%rd1+28], %r6;)");
    test::Device device(text);
    auto out = device.array<std::uint32_t>(8 * 96);
    device.run("broken", {{3}, {32}}, out);
    for (std::uint32_t i = 0; i < 96; ++i) {
        const std::uint32_t* o = out.data + 8 * i;
        REQUIRE(o[0] == (i < 5 ? 10 : 20));
        REQUIRE(o[1] == (i < 5 ? 40 : 30));
        REQUIRE(o[2] == 77);
        REQUIRE(o[3] == 88);
        REQUIRE(o[4] == (i ^ o[0] ^ o[1]));
        float half;
        std::memcpy(&half, o + 5, sizeof half);
        REQUIRE(half == (i < 5 ? 2.0f : 0.5f));
        REQUIRE(o[6] == 0xffffffff);
        REQUIRE(o[7] == 0x33333333);
    }
}

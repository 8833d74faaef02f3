// Calls, local and constant memory, variables of a module, output.
#include "both.hpp"

#include <functional>

using test::scrambled;

TEST_CASE("a function that calls itself") {
    auto device = test::kernels_of_both();
    auto out = device.array<int>(100);
    device.run("recursion", {{1}, {100}}, out);
    const std::function<int(int)> fibonacci = [&](int n) {
        return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
    };
    for (int i = 0; i < 100; ++i)
        REQUIRE(out[i] == fibonacci(i % 12));
}

namespace {
struct Packet {
    char tag;
    short small;
    int count;
    double weight;
    unsigned char bytes[5];
};
} // namespace

TEST_CASE("structs go into functions and come back") {
    auto device = test::kernels_of_both();
    auto packets = device.array<Packet>(50);
    for (int i = 0; i < 50; ++i)
        packets[i] = {char(i), short(-i), i * 100, i * 0.5, {1, 2, 3, 4, 5}};
    device.run("struct_function", {{1}, {50}}, packets);
    for (int i = 0; i < 50; ++i) {
        REQUIRE(packets[i].tag == char(i));
        REQUIRE(packets[i].small == short(-i));
        REQUIRE(packets[i].count == i * 101);
        REQUIRE(packets[i].weight == i * 1.0);
        for (int k = 0; k < 5; ++k)
            REQUIRE(packets[i].bytes[k] == (k == i % 5 ? 9 : k + 1));
    }
}

TEST_CASE("calls through pointers") {
    auto device = test::kernels_of_both();
    auto out = device.array<int>(96);
    device.run("function_pointers", {{1}, {96}}, out);
    const std::function<int(int)> functions[] = {
        [](int x) { return 2 * x; }, [](int x) { return x * x; }, [](int x) { return -x; }};
    for (int i = 0; i < 96; ++i) {
        int value = i;
        for (int k = 0; k < 3; ++k)
            value = functions[(i + k) % 3](value) + k;
        REQUIRE(out[i] == value);
    }
}

TEST_CASE("virtual functions") {
    auto device = test::kernels_of_both();
    auto out = device.array<int>(64);
    device.run("virtual_functions", {{1}, {64}}, out);
    for (int i = 0; i < 64; ++i)
        REQUIRE(out[i] == (i % 2 == 0 ? i * i : i));
}

TEST_CASE("an array in local memory") {
    auto device = test::kernels_of_both();
    auto in = device.array<int>(128), out = device.array<int>(128);
    for (int i = 0; i < 128; ++i)
        in[i] = static_cast<int>(scrambled(i) % 1000);
    const auto work = device.run("local_array", {{1}, {128}}, in, out, 13);
    for (int i = 0; i < 128; ++i) {
        int sum = 0;
        for (int k = 0; k < 13; ++k)
            sum += (in[i] + k * 7) % 20 * 13;
        REQUIRE(out[i] == sum);
    }
    // local memory counts for nothing
    CHECK(work.sectors_written[0] == 128 / 8);
    CHECK(device.module->kernel(device.kernel_name("local_array"))->local_bytes() >= 80);
}

TEST_CASE("constants and variables of the module") {
    auto device = test::kernels_of_both();
    auto out = device.array<float>(32);
    device.run("constants", {{1}, {32}}, out);
    for (int i = 0; i < 32; ++i)
        REQUIRE(out[i] == static_cast<float>(1 << i % 8) + 8);
    auto value = device.array<int>(1);
    device.run("variables", {{1}, {1}}, value);
    CHECK(value[0] == 41);
    device.run("variables", {{1}, {1}}, value);
    CHECK(value[0] == 42);
    bool found = false;
    for (std::size_t i = 0; i < device.variables.size(); ++i) {
        const auto& variable = device.module->variables()[i];
        if (variable.name == "untouched") {
            found = true;
            CHECK(variable.bytes == 800);
            CHECK_FALSE(variable.constant);
            CHECK(reinterpret_cast<double*>(device.memory.at(device.variables[i]))[99] == 2.5);
        }
        CHECK((variable.name == "coefficients") == variable.constant);
    }
    CHECK(found);
}

TEST_CASE("printf") {
    auto device = test::kernels_of_both();
    auto text = device.array<char>(10);
    std::strcpy(text.data, "sentence");
    device.run("greetings", {{1}, {2}}, text, 3);
    const std::string line = "3 sentence| 1.50|3     |fd D 1099511627776 %|0x1234 1.000000e+10\n";
    CHECK(device.printed == line + line + "no arguments\n");
}

TEST_CASE("what a kernel needs is known before it runs") {
    auto device = test::kernels_of_both();
    const auto* kernel = device.module->kernel(device.kernel_name("struct_argument"));
    REQUIRE(kernel->parameters().size() == 2);
    CHECK(kernel->parameters()[0].bytes == sizeof(Packet));
    CHECK(kernel->parameters()[1].offset == sizeof(Packet));
    CHECK(kernel->parameter_bytes() == sizeof(Packet) + 8);
    CHECK(kernel->max_threads_per_block() == 1024);
    CHECK(kernel->registers() >= 16);
    CHECK(device.module->kernel(device.kernel_name("sum_int"))->static_shared_bytes() == 4096);
    CHECK(device.module->kernel("nothing") == nullptr);
    CHECK(sim::ptx::demangle(device.kernel_name("axpy")) ==
          "axpy(float const*, float*, float, int)");
}

// Instructions against what the processor of this machine computes.
#include "both.hpp"

#include <cfenv>
#include <cmath>
#include <functional>
#include <limits>

using test::scrambled;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
const double nan_value = std::nan("");

template <class T> std::vector<T> interesting();

template <> std::vector<long long> interesting() {
    std::vector<long long> values = {1,
                                     -1,
                                     2,
                                     3,
                                     -7,
                                     100,
                                     INT32_MAX,
                                     INT32_MIN,
                                     std::int64_t{INT32_MAX} + 1,
                                     INT64_MAX,
                                     INT64_MIN,
                                     0x0123456789abcdef,
                                     -0x0123456789abcdef};
    for (int i = 0; i < 50; ++i)
        values.push_back(static_cast<long long>(scrambled(i)) >> (scrambled(i + 99) % 60));
    std::erase(values, 0);
    return values;
}

template <> std::vector<float> interesting() {
    std::vector<float> values = {0.0f,
                                 -0.0f,
                                 1.0f,
                                 -1.0f,
                                 0.5f,
                                 1.5f,
                                 2.5f,
                                 -2.5f,
                                 3.1415927f,
                                 1e10f,
                                 -1e-10f,
                                 1e38f,
                                 -1e38f,
                                 1e-39f,
                                 -3e-45f,
                                 1e-38f,
                                 8388609.f,
                                 16777217.f,
                                 float(infinity),
                                 -float(infinity),
                                 float(nan_value)};
    for (int i = 0; i < 40; ++i)
        values.push_back(std::ldexp(static_cast<float>(scrambled(i) % 16777216) - 8388608.0f,
                                    static_cast<int>(scrambled(i + 7) % 60) - 45));
    return values;
}

template <> std::vector<double> interesting() {
    std::vector<double> values;
    for (const float value : interesting<float>())
        values.push_back(value);
    values.push_back(1e308);
    values.push_back(5e-324);
    for (int i = 0; i < 20; ++i)
        values.push_back(std::ldexp(static_cast<double>(scrambled(i)), -60));
    return values;
}

template <class T> struct Pairs {
    test::Array<T> a, b;
    int count;
};

template <class T> Pairs<T> pairs(test::Device& device) {
    const std::vector<T> values = interesting<T>();
    const std::size_t n = values.size() * values.size();
    Pairs<T> all{device.array<T>(n), device.array<T>(n), static_cast<int>(n)};
    for (std::size_t i = 0; i < n; ++i) {
        all.a[i] = values[i / values.size()];
        all.b[i] = values[i % values.size()];
    }
    return all;
}

template <class T> bool same(T a, T b) {
    return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

template <class F> auto rounded(int mode, F f) {
    std::fesetround(mode);
    const volatile auto result = f();
    std::fesetround(FE_TONEAREST);
    return result;
}

test::Grid grid_for(int n) {
    return {{std::uint32_t(n + 127) / 128}, {128}};
}

long long wide_high(long long a, long long b) {
    return static_cast<long long>((static_cast<__int128>(a) * b) >> 64);
}

long long unsigned_high(unsigned long long a, unsigned long long b) {
    return static_cast<long long>((static_cast<unsigned __int128>(a) * b) >> 64);
}

unsigned reversed(unsigned a) {
    unsigned result = 0;
    for (int i = 0; i < 32; ++i)
        result |= (a >> i & 1) << (31 - i);
    return result;
}

unsigned permuted(unsigned a, unsigned b, unsigned selector) {
    const std::uint64_t both = std::uint64_t{b} << 32 | a;
    unsigned result = 0;
    for (int i = 0; i < 4; ++i)
        result |= unsigned(both >> (selector >> 4 * i & 7) * 8 & 0xff) << 8 * i;
    return result;
}

int sum_of_products(int a, int b, int c) {
    for (int i = 0; i < 4; ++i)
        c += static_cast<signed char>(a >> 8 * i) * static_cast<signed char>(b >> 8 * i);
    return c;
}

unsigned sum_of_products(unsigned a, unsigned b, unsigned c) {
    for (int i = 0; i < 4; ++i)
        c += (a >> 8 * i & 0xff) * (b >> 8 * i & 0xff);
    return c;
}

int low_24(int a) {
    return static_cast<int>(static_cast<unsigned>(a) << 8) >> 8;
}

} // namespace

TEST_CASE("integers of 32 and 64 bits") {
    auto device = test::kernels_of_both();
    const auto all = pairs<long long>(device);
    auto out = device.array<long long>(std::size_t(all.count) * 24);
    device.run("integers", grid_for(all.count), all.a, all.b, out, all.count);
    for (int i = 0; i < all.count; ++i) {
        const long long x = all.a[i], y = all.b[i];
        const auto ux = static_cast<unsigned long long>(x), uy = static_cast<unsigned long long>(y);
        const int sx = static_cast<int>(x), sy = static_cast<int>(y);
        const auto vx = static_cast<unsigned>(x), vy = static_cast<unsigned>(y);
        const long long* o = out.data + std::size_t(i) * 24;
        CAPTURE(x, y);
        const bool overflows = x == INT64_MIN && y == -1;
        REQUIRE(o[0] == (overflows ? x : x / y));
        REQUIRE(o[1] == (overflows ? 0 : x % y));
        REQUIRE(o[2] == static_cast<long long>(ux / uy));
        REQUIRE(o[3] == static_cast<long long>(ux % uy));
        REQUIRE(o[4] == (sy != 0 ? sx / (sy == -1 ? 1 : sy) : 0));
        REQUIRE(o[5] == (sy != 0 ? sx % (sy == -1 ? 1 : sy) : 0));
        REQUIRE(o[6] == (vy != 0 ? vx / vy : 0));
        REQUIRE(o[7] == (vy != 0 ? vx % vy : 0));
        REQUIRE(o[8] == (static_cast<long long>(sx) * sy) >> 32);
        REQUIRE(o[9] == static_cast<long long>((static_cast<unsigned long long>(vx) * vy) >> 32));
        REQUIRE(o[10] == wide_high(x, y));
        REQUIRE(o[11] == unsigned_high(ux, uy));
        REQUIRE(o[12] == static_cast<long long>(ux << (y & 63)));
        REQUIRE(o[13] == x >> (y & 63));
        REQUIRE(o[14] == static_cast<long long>(ux >> (uy & 63)));
        REQUIRE(o[15] == __builtin_clzll(ux) * 100 + __builtin_popcountll(ux));
        REQUIRE(o[16] == static_cast<long long>(
                             static_cast<std::uint64_t>(reversed(static_cast<unsigned>(ux))) << 32 |
                             reversed(static_cast<unsigned>(ux >> 32))));
        REQUIRE(o[17] == __builtin_ffsll(x) * 100 + __builtin_ffs(sx));
        REQUIRE(o[18] == permuted(vx, vy, 0x3715));
        REQUIRE(o[19] == static_cast<unsigned>(
                             ((static_cast<std::uint64_t>(vy) << 32 | vx) << (sx & 31)) >> 32));
        const auto magnitude = [](auto value) {
            using U = std::make_unsigned_t<decltype(value)>;
            return static_cast<decltype(value)>(value < 0 ? U{0} - static_cast<U>(value)
                                                          : static_cast<U>(value));
        };
        const auto sum = static_cast<std::uint64_t>(static_cast<std::int64_t>(magnitude(sx))) +
                         static_cast<std::uint64_t>(magnitude(x)) +
                         static_cast<std::uint64_t>(static_cast<std::int64_t>(std::min(sx, sy))) +
                         std::max(vx, vy);
        REQUIRE(o[20] == static_cast<long long>(sum));
        const auto difference = static_cast<unsigned>(std::llabs(static_cast<long long>(sx) - sy));
        const auto product = static_cast<unsigned>(static_cast<long long>(low_24(sx)) * low_24(sy));
        REQUIRE(o[21] == difference + 7 + product);
        REQUIRE(o[22] == static_cast<long long>(static_cast<unsigned>(sum_of_products(sx, sy, 5)) +
                                                sum_of_products(vx, vy, 5u)));
        const auto average = static_cast<unsigned>((static_cast<long long>(sx) + sy + 1) >> 1);
        REQUIRE(o[23] == static_cast<long long>(
                             average + static_cast<unsigned>(vx == 0 ? 32 : __builtin_clz(vx)) +
                             static_cast<unsigned>(__builtin_popcount(vx)) + reversed(vx)));
    }
}

TEST_CASE("products of 128 bits") {
    auto device = test::kernels_of_both();
    auto a = device.array<unsigned long long>(128), b = device.array<unsigned long long>(128);
    auto out = device.array<unsigned long long>(256);
    for (int i = 0; i < 128; ++i) {
        a[i] = scrambled(i);
        b[i] = scrambled(i + 500) | 1ull << 63;
    }
    device.run("wide_products", {{1}, {128}}, a, b, out);
    for (int i = 0; i < 128; ++i) {
        const unsigned __int128 product = static_cast<unsigned __int128>(a[i]) * b[i] + a[i];
        const unsigned __int128 sum =
            product + (static_cast<unsigned __int128>(b[i]) << 64 | a[i]) - b[i];
        REQUIRE(out[2 * i] == static_cast<unsigned long long>(sum));
        REQUIRE(out[2 * i + 1] == static_cast<unsigned long long>(sum >> 64));
    }
}

TEST_CASE("single precision is IEEE") {
    auto device = test::kernels_of_both();
    const auto all = pairs<float>(device);
    auto out = device.array<float>(std::size_t(all.count) * 24);
    device.run("floats", grid_for(all.count), all.a, all.b, out, all.count);
    for (int i = 0; i < all.count; ++i) {
        const volatile float x = all.a[i], y = all.b[i];
        const auto zero_min = [](float a, float b) {
            return a == b ? (std::signbit(a) ? a : b) : std::fmin(a, b);
        };
        const auto zero_max = [](float a, float b) {
            return a == b ? (std::signbit(a) ? b : a) : std::fmax(a, b);
        };
        const float expected[] = {
            x + y,
            x - y,
            x * y,
            x / y,
            std::sqrt(x),
            std::fma(x, y, x),
            zero_min(x, y),
            zero_max(x, y),
            std::fabs(x),
            std::copysign(x, y),
            std::floor(x),
            std::ceil(x),
            std::trunc(x),
            std::rint(x),
            1.0f / x,
            rounded(FE_TOWARDZERO, [&] { return x + y; }),
            rounded(FE_UPWARD, [&] { return x + y; }),
            rounded(FE_DOWNWARD, [&] { return x * y; }),
            rounded(FE_TOWARDZERO, [&] { return x / y; }),
            rounded(FE_UPWARD, [&] { return std::sqrt(std::fabs(y)); }),
            std::isnan(x) ? 0.0f : std::fmin(std::fmax(x, 0.0f), 1.0f),
            x < y    ? 1.0f
            : x > y  ? 2.0f
            : x == y ? 3.0f
                     : 4.0f,
            static_cast<float>(std::isnan(x) + 2 * std::isinf(x) + 4 * !(x >= y) +
                               8 * std::signbit(x)),
            rounded(FE_DOWNWARD, [&] { return std::fma(x, y, -x); }),
        };
        for (int k = 0; k < 24; ++k) {
            CAPTURE(x, y, k, out[std::size_t(i) * 24 + k], expected[k]);
            if (k == 20 && expected[k] == 0)
                REQUIRE(out[std::size_t(i) * 24 + k] == 0.0f);
            else if (k != 22 || !std::isnan(x)) // the sign of NaN is nobody's business
                REQUIRE(same(out[std::size_t(i) * 24 + k], expected[k]));
        }
    }
}

TEST_CASE("double precision is IEEE") {
    auto device = test::kernels_of_both();
    const auto all = pairs<double>(device);
    auto out = device.array<double>(std::size_t(all.count) * 12);
    device.run("doubles", grid_for(all.count), all.a, all.b, out, all.count);
    for (int i = 0; i < all.count; ++i) {
        const volatile double x = all.a[i], y = all.b[i];
        const double expected[] = {
            x + y,
            x * y,
            x / y,
            std::sqrt(std::fabs(x)),
            std::fma(x, y, y),
            x == y ? (std::signbit(x) ? x : y) : std::fmin(x, y),
            x == y ? (std::signbit(x) ? y : x) : std::fmax(x, y),
            std::floor(x),
            std::rint(x),
            rounded(FE_UPWARD, [&] { return x + y; }),
            rounded(FE_TOWARDZERO, [&] { return x * y; }),
            rounded(FE_DOWNWARD, [&] { return x / y; }),
        };
        for (int k = 0; k < 12; ++k) {
            CAPTURE(x, y, k, out[std::size_t(i) * 12 + k], expected[k]);
            REQUIRE(same(out[std::size_t(i) * 12 + k], expected[k]));
        }
    }
}

namespace {

/// The conversions of CUDA: what is out of range becomes the nearest number that is not.
template <class To> To saturated(double value) {
    if (std::isnan(value)) return 0;
    const double limit = std::ldexp(1.0, std::numeric_limits<To>::digits);
    if (value >= limit) return std::numeric_limits<To>::max();
    if (value <= (std::is_signed_v<To> ? -limit : 0.0)) return std::numeric_limits<To>::min();
    return static_cast<To>(value);
}

int bits_of(float value) {
    int bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

/// Rounds to a number with `bits` bits of mantissa and this smallest exponent, nearest even.
double rounded_to(double value, int bits, int smallest) {
    if (value == 0 || !std::isfinite(value)) return value;
    int exponent = 0;
    std::frexp(value, &exponent);
    const int unit = std::max(exponent - bits, smallest);
    return std::ldexp(std::nearbyint(std::ldexp(value, -unit)), unit);
}

double half_value(unsigned short bits) {
    const int exponent = bits >> 10 & 31;
    const double mantissa = bits & 1023;
    double value = exponent == 31  ? (mantissa == 0 ? infinity : nan_value)
                   : exponent == 0 ? std::ldexp(mantissa, -24)
                                   : std::ldexp(1024 + mantissa, exponent - 25);
    return (bits & 0x8000) != 0 ? -value : value;
}

double brain_value(unsigned short bits) {
    const unsigned wide = unsigned{bits} << 16;
    float value;
    std::memcpy(&value, &wide, sizeof value);
    return value;
}

double as_half(double value) {
    const double result = rounded_to(value, 11, -24);
    return std::fabs(result) >= 65536 ? std::copysign(infinity, result) : result;
}

} // namespace

TEST_CASE("conversions between types") {
    auto device = test::kernels_of_both();
    std::vector<double> values = interesting<double>();
    for (const double value : {0.5, 1.5, -0.5, 65504.0, 65519.9, 65520.0, 6e-8, 2.9e-8, -1.25e9,
                               3e9, -3e9, 1e19, 1.8e19, 2e19, -1e19, 127.5, 255.5, 1e-7})
        values.push_back(value);
    const int n = static_cast<int>(values.size());
    auto in = device.array<double>(n);
    auto out = device.array<long long>(std::size_t(n) * 20);
    std::copy(values.begin(), values.end(), in.data);
    device.run("conversions", grid_for(n), in, out, n);
    for (int i = 0; i < n; ++i) {
        const volatile double x = values[i];
        const auto f = static_cast<float>(x);
        const long long* o = out.data + std::size_t(i) * 20;
        CAPTURE(x);
        REQUIRE(o[0] == saturated<int>(std::trunc(x)));
        REQUIRE(o[1] == saturated<unsigned>(std::trunc(x)));
        REQUIRE(o[2] == saturated<long long>(std::trunc(x)));
        REQUIRE(o[3] == static_cast<long long>(saturated<unsigned long long>(std::trunc(x))));
        REQUIRE(o[4] == saturated<int>(std::rint(x)));
        REQUIRE(o[5] == saturated<int>(std::ceil(x)));
        REQUIRE(o[6] == saturated<long long>(std::floor(x)));
        REQUIRE(o[7] == saturated<int>(std::trunc(f)));
        REQUIRE(o[8] == saturated<unsigned>(std::ceil(f)));
        const int whole = saturated<int>(std::trunc(x));
        REQUIRE(o[9] == static_cast<short>(whole));
        REQUIRE(o[10] == static_cast<unsigned char>(whole));
        const auto narrow = [&](int mode) {
            return rounded(mode, [&] { return static_cast<float>(x); });
        };
        if (!std::isnan(x)) {
            REQUIRE(o[11] == bits_of(narrow(FE_TOWARDZERO)));
            REQUIRE(o[12] == bits_of(narrow(FE_UPWARD)));
            REQUIRE(same(half_value(static_cast<unsigned short>(o[17])), as_half(f)));
            REQUIRE(same(half_value(static_cast<unsigned short>(o[18])), as_half(x)));
            const double brain = rounded_to(f, 8, -133);
            REQUIRE(same(static_cast<float>(brain_value(static_cast<unsigned short>(o[19]))),
                         static_cast<float>(brain)));
        } else {
            REQUIRE(std::isnan(half_value(static_cast<unsigned short>(o[17]))));
        }
        REQUIRE(o[13] == bits_of(static_cast<float>(whole)));
        const volatile int again = whole;
        REQUIRE(o[14] ==
                bits_of(rounded(FE_TOWARDZERO, [&] { return static_cast<float>(again); })));
        const auto positive =
            static_cast<unsigned long long>(saturated<long long>(std::trunc(std::fabs(x))));
        REQUIRE(o[15] == bits_of(static_cast<float>(positive)));
        const auto as_double = static_cast<double>(saturated<long long>(std::trunc(x)));
        REQUIRE(std::memcmp(&o[16], &as_double, sizeof as_double) == 0);
    }
}

TEST_CASE("mathematical functions") {
    auto device = test::kernels_of_both();
    const int n = 128;
    auto in = device.array<double>(n), out = device.array<double>(n * 8);
    auto single = device.array<float>(n), single_out = device.array<float>(n * 10);
    for (int i = 0; i < n; ++i) {
        in[i] = (static_cast<double>(scrambled(i) % 200000) - 100000) / 9000.0;
        single[i] = static_cast<float>(in[i]);
    }
    device.run("mathematics", {{1}, {n}}, in, out, single, single_out);
    for (int i = 0; i < n; ++i) {
        const double x = in[i];
        const double expected[] = {std::sin(x),
                                   std::cos(x * 1e6),
                                   std::exp(x),
                                   std::log(std::fabs(x) + 1e-3),
                                   std::pow(std::fabs(x) + 0.5, x),
                                   std::tanh(x),
                                   std::cbrt(x),
                                   std::atan2(x, 2.0)};
        for (int k = 0; k < 8; ++k) {
            CAPTURE(x, k);
            REQUIRE(out[8 * i + k] == Approx(expected[k]).epsilon(1e-14).margin(1e-300));
        }
        const float f = single[i];
        const double d = f;
        const double large = f * 1e5f;
        const double wanted[] = {std::sin(d),
                                 std::cos(large),
                                 std::exp(d),
                                 std::log(std::fabs(f) + 1e-3f),
                                 std::pow(static_cast<double>(std::fabs(f) + 0.5f), d),
                                 std::tanh(d),
                                 1 / std::sqrt(static_cast<double>(std::fabs(f) + 1e-3f)),
                                 std::exp(d),
                                 std::sin(d),
                                 std::erf(d)};
        for (int k = 0; k < 10; ++k) {
            CAPTURE(f, k);
            REQUIRE(single_out[10 * i + k] == Approx(wanted[k]).epsilon(2e-6).margin(1e-6));
        }
    }
}

TEST_CASE("half precision") {
    auto device = test::kernels_of_both();
    const int n = 1024;
    auto a = device.array<unsigned short>(n), b = device.array<unsigned short>(n);
    auto out = device.array<unsigned short>(8 * n);
    auto pairs = device.array<unsigned short>(2 * n),
         pairs_out = device.array<unsigned short>(2 * n);
    auto brain = device.array<unsigned short>(n), brain_out = device.array<unsigned short>(n);
    const auto finite = [](std::uint64_t bits, unsigned exponent) {
        auto half = static_cast<unsigned short>(bits);
        if ((half & exponent) == exponent) half = static_cast<unsigned short>(half & ~0x4000u);
        return half;
    };
    for (int i = 0; i < n; ++i) {
        a[i] = finite(scrambled(i), 0x7c00);
        b[i] = finite(scrambled(i + n), 0x7c00);
        brain[i] = finite(scrambled(i + 2 * n), 0x7f80);
    }
    for (int i = 0; i < 2 * n; ++i)
        pairs[i] = finite(scrambled(i + 9 * n), 0x7c00);
    device.run("halves", {{1}, {n}}, a, b, out, pairs, pairs_out, brain, brain_out);
    for (int i = 0; i < n; ++i) {
        const double x = half_value(a[i]), y = half_value(b[i]);
        const double expected[] = {
            as_half(x + y),  as_half(x - y), as_half(x * y), as_half(x * y + x),
            std::fmax(x, y), x < y ? x : -y, std::fabs(x),   as_half(static_cast<float>(x) * 3.0f)};
        for (int k = 0; k < 8; ++k) {
            CAPTURE(x, y, k);
            REQUIRE(half_value(out[8 * i + k]) == expected[k]);
        }
        for (int k = 0; k < 2; ++k) {
            const double p = half_value(pairs[2 * i + k]);
            const double twice = as_half(p + p);
            const double wanted = std::isinf(twice) ? twice : as_half(p * p + twice);
            REQUIRE(half_value(pairs_out[2 * i + k]) == wanted);
        }
        const double z = brain_value(brain[i]);
        const auto as_brain = [](double value) {
            const double result = rounded_to(value, 8, -133);
            return std::fabs(result) >= 0x1p128 ? std::copysign(infinity, result) : result;
        };
        REQUIRE(brain_value(brain_out[i]) == as_brain(z + as_brain(z * 1.5)));
    }
}

TEST_CASE("pairs of halves compare each on its own") {
    auto device = test::kernels_of_both();
    const int n = 512;
    auto a = device.array<unsigned short>(2 * n), b = device.array<unsigned short>(2 * n);
    auto greater = device.array<unsigned short>(2 * n);
    auto all = device.array<int>(2 * n);
    for (int i = 0; i < 2 * n; ++i) {
        a[i] = static_cast<unsigned short>(scrambled(i));
        b[i] = i % 3 == 0 ? a[i] : static_cast<unsigned short>(scrambled(i + 5 * n));
    }
    device.run("half_comparisons", {{1}, {n}}, a, b, greater, all);
    for (int i = 0; i < n; ++i) {
        bool at_least = true, less_or_unordered = true;
        for (int k = 2 * i; k < 2 * i + 2; ++k) {
            const double x = half_value(a[k]), y = half_value(b[k]);
            REQUIRE(half_value(greater[k]) == (x > y ? 1 : 0));
            at_least &= x >= y;
            less_or_unordered &= !(x >= y);
        }
        REQUIRE((all[2 * i] != 0) == at_least);
        REQUIRE((all[2 * i + 1] != 0) == less_or_unordered);
    }
}

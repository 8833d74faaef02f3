// Atomic operations. Memory may be shared with the host's threads, so they are atomic for those as
// well.
#include "ptx/group.hpp"
#include "ptx/handlers.hpp"
#include "ptx/ops/operations.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

namespace sim::ptx {
namespace {

template <class T>
using Bits = std::conditional_t<sizeof(T) == 2, std::uint16_t,
                                std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>;

struct Add {
    template <class T> static T apply(T a, T b) {
        if constexpr (std::is_integral_v<T>)
            return static_cast<T>(static_cast<Bits<T>>(a) + static_cast<Bits<T>>(b));
        else
            return a + b;
    }
};
struct Min {
    template <class T> static T apply(T a, T b) { return b < a ? b : a; }
};
struct Max {
    template <class T> static T apply(T a, T b) { return a < b ? b : a; }
};
struct Increment {
    template <class T> static T apply(T a, T b) { return a >= b ? T{0} : static_cast<T>(a + 1); }
};
struct Decrement {
    template <class T> static T apply(T a, T b) {
        return a == 0 || a > b ? b : static_cast<T>(a - 1);
    }
};
struct And {
    template <class T> static T apply(T a, T b) { return a & b; }
};
struct Or {
    template <class T> static T apply(T a, T b) { return a | b; }
};
struct Xor {
    template <class T> static T apply(T a, T b) { return a ^ b; }
};
struct Exchange {
    template <class T> static T apply(T, T b) { return b; }
};
struct CompareAndSwap {
    template <class T> static T apply(T a, T b, T c) { return a == b ? c : a; }
};

/// Halves and their pairs, added with the handler that also serves plain additions.
template <Type type> struct AddHalves {
    template <class T> static T apply(T a, T b) {
        static const Handler add = operations().arithmetic(Op::add, type);
        alignas(64) T values[3] = {a, b, 0};
        Lanes lanes;
        lanes.base[0] = reinterpret_cast<std::byte*>(values);
        lanes.high = 1;
        Instruction in;
        in.operand[0] = 2 * sizeof(T);
        in.operand[1] = 0;
        in.operand[2] = sizeof(T);
        add(in, lanes);
        return values[2];
    }
};

/// The old value.
template <class F, class T, class... S> T update(std::byte* place, S... source) {
    using B = Bits<T>;
    B* word = reinterpret_cast<B*>(place);
    B before = __atomic_load_n(word, __ATOMIC_RELAXED);
    for (;;) {
        const T result = F::apply(std::bit_cast<T>(before), source...);
        if (__atomic_compare_exchange_n(word, &before, std::bit_cast<B>(result), false,
                                        __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
            return std::bit_cast<T>(before);
    }
}

template <class F, class T, bool returns, bool compares>
void run(const Instruction& in, Lanes& lanes) {
    std::byte* pointers[group_lanes];
    const Access access = operations().resolve(in, lanes, pointers);
    constexpr std::size_t first = returns ? 1 : 0;
    const T* b = array_of<T>(lanes, in.operand[first + 1]);
    const T* c = compares ? array_of<T>(lanes, in.operand[first + 2]) : nullptr;
    T* d = returns ? array_of<T>(lanes, in.operand[0]) : nullptr;
    std::uint64_t count = 0;
    for (std::uint32_t i = lanes.low; i < lanes.high; ++i) {
        if (!lanes.has(i)) continue;
        ++count;
        std::byte* place =
            access.pointers != nullptr ? access.pointers[i] : access.base + i * access.stride;
        T old;
        if constexpr (compares)
            old = update<F, T>(place, b[i], c[i]);
        else
            old = update<F, T>(place, b[i]);
        if constexpr (returns) d[i] = old;
    }
    lanes.group->around->work.atomics += count;
}

template <class F, class T, bool compares = false> Handler pick(bool returns) {
    return returns ? run<F, T, true, compares> : run<F, T, false, compares>;
}

template <class F> Handler unsigned_types(Type type, bool returns) {
    switch (size_of(type)) {
    case 4:
        return pick<F, std::uint32_t>(returns);
    case 8:
        return pick<F, std::uint64_t>(returns);
    default:
        return nullptr;
    }
}

template <class F> Handler ordered_types(Type type, bool returns) {
    switch (type) {
    case Type::s32:
        return pick<F, std::int32_t>(returns);
    case Type::s64:
        return pick<F, std::int64_t>(returns);
    case Type::u32:
    case Type::u64:
        return unsigned_types<F>(type, returns);
    default:
        return nullptr;
    }
}

Handler adding(Type type, bool returns) {
    switch (type) {
    case Type::f32:
        return pick<Add, float>(returns);
    case Type::f64:
        return pick<Add, double>(returns);
    case Type::f16:
        return pick<AddHalves<Type::f16>, std::uint16_t>(returns);
    case Type::bf16:
        return pick<AddHalves<Type::bf16>, std::uint16_t>(returns);
    case Type::f16x2:
        return pick<AddHalves<Type::f16x2>, std::uint32_t>(returns);
    case Type::bf16x2:
        return pick<AddHalves<Type::bf16x2>, std::uint32_t>(returns);
    default:
        return unsigned_types<Add>(type, returns);
    }
}

} // namespace

Handler atomic_handler(Atomic operation, Type type, bool returns) {
    switch (operation) {
    case Atomic::add:
        return adding(type, returns);
    case Atomic::min:
        return ordered_types<Min>(type, returns);
    case Atomic::max:
        return ordered_types<Max>(type, returns);
    case Atomic::inc:
        return type == Type::u32 ? pick<Increment, std::uint32_t>(returns) : nullptr;
    case Atomic::dec:
        return type == Type::u32 ? pick<Decrement, std::uint32_t>(returns) : nullptr;
    case Atomic::and_:
        return unsigned_types<And>(type, returns);
    case Atomic::or_:
        return unsigned_types<Or>(type, returns);
    case Atomic::xor_:
        return unsigned_types<Xor>(type, returns);
    case Atomic::exch:
        return unsigned_types<Exchange>(type, returns);
    case Atomic::cas:
        switch (size_of(type)) {
        case 2:
            return pick<CompareAndSwap, std::uint16_t, true>(returns);
        case 4:
            return pick<CompareAndSwap, std::uint32_t, true>(returns);
        case 8:
            return pick<CompareAndSwap, std::uint64_t, true>(returns);
        default:
            return nullptr;
        }
    }
    return nullptr;
}

} // namespace sim::ptx

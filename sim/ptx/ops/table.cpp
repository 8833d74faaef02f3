#include "ptx/ops/each.hpp"

namespace sim::ptx::SIM_PTX_SET {
namespace {

Handler arithmetic(Op op, Type type) {
    if (const Handler handler = move_handler(op, type)) return handler;
    if (type == Type::f32 || type == Type::f64) return float_handler(op, type);
    if (is_half(type)) return half_handler(op, type);
    if (const Handler handler = carry_handler(op, type)) return handler;
    if (const Handler handler = bit_handler(op, type)) return handler;
    return integer_handler(op, type);
}

} // namespace

const Operations& table() {
    static constexpr Operations operations = {
        arithmetic,      compare_handler, convert_handler, load_handler, store_handler,
        shuffle_handler, resolve,         summarise,       split,        keep_inactive};
    return operations;
}

} // namespace sim::ptx::SIM_PTX_SET

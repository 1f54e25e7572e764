#pragma once
/// Finds the scalars of plain structs, with their offsets.
#include <wye/device/schema.hpp>

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace wye::inline v0 {

namespace detail {

/// Converts to any type. Never called: the conversions tell how many initializers an aggregate
/// takes.
struct AnyValue {
  template <class U>
  operator U() const noexcept;  // NOLINT: implicit, as an initializer is
};
struct AnyUnion {
  template <class U>
  requires std::is_union_v<U>
  operator U() const noexcept;  // NOLINT
};
template <class T>
struct AnyBase {
  template <class U>
  requires(std::is_base_of_v<U, T> && !std::is_same_v<U, T>) operator U() const noexcept;  // NOLINT
};
template <std::size_t>
using AnyValueAt = AnyValue;

/// Returns whether `T{n values, last...}` is an initialization.
template <class T, class... Last, std::size_t... I>
consteval bool takes(std::index_sequence<I...>) {
  return requires { T{AnyValueAt<I>{}..., Last{}...}; };
}
/// Returns whether `T{values, {values}, values}` is an initialization.
template <class T, std::size_t... L, std::size_t... N, std::size_t... R>
consteval bool takes_nested(std::index_sequence<L...>, std::index_sequence<N...>, std::index_sequence<R...>) {
  return requires { T{AnyValueAt<L>{}..., {AnyValueAt<N>{}...}, AnyValueAt<R>{}...}; };
}
template <std::size_t n>
using Indices = std::make_index_sequence<n>;

/// The most initializers that are tried. Members of larger aggregates stay unknown.
inline constexpr std::size_t most_initializers = 128;
/// The most members of one struct, without those of nested structs.
inline constexpr std::size_t most_bound_members = 32;
/// The most numbers of one struct, with those of nested structs and arrays.
inline constexpr std::size_t most_members = 1024;

/// Returns the number of initializers of `T`. A member array takes one for each element: its braces
/// are left out.
template <class T, std::size_t n = 0>
consteval std::size_t initializers() {
  if constexpr (n > most_initializers)
    return n;
  else if constexpr (takes<T, AnyValue>(Indices<n>{}))
    return initializers<T, n + 1>();
  else
    return n;
}

/// Returns how many of the `n` initializers of `T` belong to the member that begins with number
/// `at`.
template <class T, std::size_t at, std::size_t n, std::size_t tried = n - at>
consteval std::size_t initializers_of_member() {
  if constexpr (tried <= 1 || !takes_nested<T>(Indices<at>{}, Indices<2>{}, Indices<0>{}))
    return 1;
  else if constexpr (takes_nested<T>(Indices<at>{}, Indices<tried>{}, Indices<n - at - tried>{}) &&
                     !takes_nested<T>(Indices<at>{}, Indices<tried>{}, Indices<n - at - tried + 1>{}))
    return tried;
  else
    return initializers_of_member<T, at, n, tried - 1>();
}

/// Returns the number of members of `T`, which takes `n` initializers; 0 if a member is a union.
template <class T, std::size_t n, std::size_t at = 0, std::size_t members = 0>
consteval std::size_t count_members() {
  if constexpr (at >= n)
    return members;
  else if constexpr (takes<T, AnyUnion>(Indices<at>{}))
    return 0;
  else
    return count_members<T, n, at + initializers_of_member<T, at, n>(), members + 1>();
}

/// Returns the number of members that structured bindings decompose; 0 if `T` is no such struct or
/// has too many.
template <class T>
consteval std::size_t bound_members() {
  if constexpr (!std::is_class_v<T> || !std::is_aggregate_v<T> || !reads_members<T>)
    return 0;
  else if constexpr (requires { std::tuple_size<T>::value; } || takes<T, AnyBase<T>>(Indices<0>{}))
    return 0;
  else if constexpr (constexpr std::size_t n = initializers<T>(); n > most_initializers)
    return 0;
  else
    return count_members<T, n>() > most_bound_members ? 0 : count_members<T, n>();
}

/// Calls `f(members...)`. Bit-fields are passed as copies.
template <std::size_t n, class T, class F>
void with_members(const T& value, F f) {
  if constexpr (n == 1) {
    const auto& [m1] = value;
    f(m1);
  } else if constexpr (n == 2) {
    const auto& [m1, m2] = value;
    f(m1, m2);
  } else if constexpr (n == 3) {
    const auto& [m1, m2, m3] = value;
    f(m1, m2, m3);
  } else if constexpr (n == 4) {
    const auto& [m1, m2, m3, m4] = value;
    f(m1, m2, m3, m4);
  } else if constexpr (n == 5) {
    const auto& [m1, m2, m3, m4, m5] = value;
    f(m1, m2, m3, m4, m5);
  } else if constexpr (n == 6) {
    const auto& [m1, m2, m3, m4, m5, m6] = value;
    f(m1, m2, m3, m4, m5, m6);
  } else if constexpr (n == 7) {
    const auto& [m1, m2, m3, m4, m5, m6, m7] = value;
    f(m1, m2, m3, m4, m5, m6, m7);
  } else if constexpr (n == 8) {
    const auto& [m1, m2, m3, m4, m5, m6, m7, m8] = value;
    f(m1, m2, m3, m4, m5, m6, m7, m8);
  } else if constexpr (n == 9) {
    const auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9] = value;
    f(m1, m2, m3, m4, m5, m6, m7, m8, m9);
  } else if constexpr (n == 10) {
    const auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10] = value;
    f(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10);
  } else if constexpr (n == 11) {
    const auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11] = value;
    f(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11);
  } else if constexpr (n == 12) {
    const auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12] = value;
    f(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12);
  } else if constexpr (n == 13) {
    const auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13] = value;
    f(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13);
  } else if constexpr (n == 14) {
    const auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14] = value;
    f(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14);
  } else if constexpr (n == 15) {
    const auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15] = value;
    f(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15);
  } else if constexpr (n == 16) {
    const auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16] = value;
    f(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16);
  } else if constexpr (n == 17) {
    const auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17] = value;
    f(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17);
  } else if constexpr (n == 18) {
    const auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18] = value;
    f(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18);
  } else if constexpr (n == 19) {
    const auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19] =
        value;
    f(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19);
  } else if constexpr (n == 20) {
    const auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20] =
        value;
    f(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20);
  } else if constexpr (n == 21) {
    const auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20,
                 m21] = value;
    f(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21);
  } else if constexpr (n == 22) {
    const auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20,
                 m21, m22] = value;
    f(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22);
  } else if constexpr (n == 23) {
    const auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20,
                 m21, m22, m23] = value;
    f(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22,
      m23);
  } else if constexpr (n == 24) {
    const auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20,
                 m21, m22, m23, m24] = value;
    f(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22,
      m23, m24);
  } else if constexpr (n == 25) {
    const auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20,
                 m21, m22, m23, m24, m25] = value;
    f(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22,
      m23, m24, m25);
  } else if constexpr (n == 26) {
    const auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20,
                 m21, m22, m23, m24, m25, m26] = value;
    f(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22,
      m23, m24, m25, m26);
  } else if constexpr (n == 27) {
    const auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20,
                 m21, m22, m23, m24, m25, m26, m27] = value;
    f(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22,
      m23, m24, m25, m26, m27);
  } else if constexpr (n == 28) {
    const auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20,
                 m21, m22, m23, m24, m25, m26, m27, m28] = value;
    f(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22,
      m23, m24, m25, m26, m27, m28);
  } else if constexpr (n == 29) {
    const auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20,
                 m21, m22, m23, m24, m25, m26, m27, m28, m29] = value;
    f(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22,
      m23, m24, m25, m26, m27, m28, m29);
  } else if constexpr (n == 30) {
    const auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20,
                 m21, m22, m23, m24, m25, m26, m27, m28, m29, m30] = value;
    f(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22,
      m23, m24, m25, m26, m27, m28, m29, m30);
  } else if constexpr (n == 31) {
    const auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20,
                 m21, m22, m23, m24, m25, m26, m27, m28, m29, m30, m31] = value;
    f(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22,
      m23, m24, m25, m26, m27, m28, m29, m30, m31);
  } else if constexpr (n == 32) {
    const auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20,
                 m21, m22, m23, m24, m25, m26, m27, m28, m29, m30, m31, m32] = value;
    f(m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m22,
      m23, m24, m25, m26, m27, m28, m29, m30, m31, m32);
  }
}

template <class M>
void append_members(std::vector<SlotMember>& to, std::uint32_t offset);

/// Appends the numbers of a struct. If structured bindings cannot decompose it, appends it as bytes
/// of an unknown kind.
template <class T>
void append_struct(std::vector<SlotMember>& to, std::uint32_t offset) {
  const std::size_t before = to.size();
  bool known = true;
  if constexpr (constexpr std::size_t n = bound_members<T>(); n != 0) {
    alignas(T) std::byte storage[sizeof(T)] = {};
    const std::byte* const first = storage;
    with_members<n>(*reinterpret_cast<const T*>(first), [&](const auto&... member) {
      const auto add = [&]<class M>(const M& one) {
        const auto at = reinterpret_cast<std::uintptr_t>(&one) - reinterpret_cast<std::uintptr_t>(first);
        if (at > sizeof(T) - sizeof(M))  // a copy of a bit-field
          known = false;
        else
          append_members<M>(to, offset + static_cast<std::uint32_t>(at));
      };
      (add(member), ...);
    });
  } else {
    known = false;
  }
  if (known) return;
  to.resize(before);
  to.push_back({ElementType::opaque, offset, static_cast<std::uint32_t>(sizeof(T))});
}

template <class M>
void append_members(std::vector<SlotMember>& to, std::uint32_t offset) {
  using T = std::remove_cv_t<M>;
  if (to.size() > most_members) return;
  if constexpr (std::is_array_v<T>) {
    using Element = std::remove_extent_t<T>;
    for (std::size_t i = 0; i < std::extent_v<T> && to.size() <= most_members; ++i)
      append_members<Element>(to, offset + static_cast<std::uint32_t>(i * sizeof(Element)));
  } else if constexpr (requires {
                         std::tuple_size<T>::value;
                         typename T::value_type;
                       }) {  // std::array
    append_members<typename T::value_type[sizeof(T) / sizeof(typename T::value_type)]>(to, offset);
  } else if constexpr (std::is_enum_v<T> && !std::is_same_v<T, std::byte>) {
    append_members<std::underlying_type_t<T>>(to, offset);
  } else if constexpr (element_type<T>() != ElementType::opaque) {
    to.push_back({element_type<T>(), offset, static_cast<std::uint32_t>(sizeof(T))});
  } else if constexpr (std::is_pointer_v<T> && sizeof(T) == sizeof(std::uint64_t)) {
    to.push_back({ElementType::uint64, offset, static_cast<std::uint32_t>(sizeof(T))});
  } else {
    append_struct<T>(to, offset);
  }
}

/// Returns the numbers of a plain struct, in order; empty for a number, or if they are unknown.
template <class T>
std::vector<SlotMember> members_of() {
  std::vector<SlotMember> members;
  if constexpr (element_type<T>() == ElementType::opaque) append_members<T>(members, 0);
  const bool whole = members.size() == 1 && members[0].element == ElementType::opaque;
  if (whole || members.size() > most_members) members.clear();
  return members;
}

}  // namespace detail

}  // namespace wye

// Parameters that are const or not from one wheel's headers to the next.
#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>

namespace emulator {

template <class Function>
struct Parameters;
template <class Result, class... Types>
struct Parameters<Result(Types...)> {
  using Tuple = std::tuple<Types...>;
};

// The type of a parameter of a function, as the header has it.
template <auto& function, std::size_t index>
using Parameter = std::tuple_element_t<index, typename Parameters<std::remove_reference_t<decltype(function)>>::Tuple>;

}  // namespace emulator

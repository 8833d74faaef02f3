/// Catch2 of the major version that meson.build has found.
#pragma once

#ifdef CATCH2_VERSION_3
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif

// What the submissions in this folder implement, each well or badly in its own way.
#pragma once

/// Returns 42.
int answer();

// The header and the example are C++ as they are.
#include "main.c"

/* The files that cmake/embed.cmake puts into the program: those of page/, and what runs other optimizers. A 0 stands behind each. */
#ifndef RL_CARRIED_H
#define RL_CARRIED_H
#include <stddef.h>

extern const unsigned char rl_page_html[], rl_page_css[], rl_page_js[], rl_optimizers_py[];
extern const size_t rl_page_html_size, rl_page_css_size, rl_page_js_size, rl_optimizers_py_size;

#endif

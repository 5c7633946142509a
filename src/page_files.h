/* The files of page/, as cmake/embed.cmake puts them into the program; a 0 stands behind each. */
#ifndef RL_PAGE_FILES_H
#define RL_PAGE_FILES_H
#include <stddef.h>

extern const unsigned char rl_page_html[], rl_page_css[], rl_page_js[];
extern const size_t rl_page_html_size, rl_page_css_size, rl_page_js_size;

#endif

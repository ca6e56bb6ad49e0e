/* plain_text: text that may stand in an XML document once it is escaped. */
#ifndef FPAC_COMMAND_PLAIN_TEXT_H
#define FPAC_COMMAND_PLAIN_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* UTF-8 of characters that XML 1.0 allows, tabs and line ends left out. */
bool text_is_plain(const char *text, size_t size);

#endif

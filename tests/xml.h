/* xml: whether a text is well-formed, as strict as pictures and pages need. */
#ifndef FPAC_TESTS_XML_H
#define FPAC_TESTS_XML_H

/* One element, and nothing behind it but blanks inside of it; tags are closed, attributes quoted, an & begins an
 * entity. Fails the test else. */
void expect_xml(const char *text);

#endif

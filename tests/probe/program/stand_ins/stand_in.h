/*
 * Tests configure a stand-in by the words of the environment variable STAND_IN, such as "gpus=2 links=4 cuInit=100".
 * A word with the name of a function makes that function do nothing and return the given code.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long setting(const char *name, long otherwise)
{
	const char *word = getenv("STAND_IN");
	size_t length = strlen(name);

	while (word && *word) {
		if (strncmp(word, name, length) == 0 && word[length] == '=')
			return strtol(word + length + 1, NULL, 0);
		word = strchr(word, ' ');
		word = word ? word + 1 : NULL;
	}
	return otherwise;
}

/* Returns from the function if STAND_IN has a code for it. */
#define RETURN_IF_ASKED(function, type)                                        \
	do {                                                                   \
		long asked = setting(#function, 0);                            \
		if (asked)                                                     \
			return (type)asked;                                    \
	} while (0)

// This part makes texts safe in files that a spreadsheet opens.

package textsafe

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// plainNumber is what may begin with a sign and is no formula all the same.
var plainNumber = regexp.MustCompile(`^[-+]?([0-9]+(\.[0-9]+)?|Infinity)$`)

// CSVField is a text for a field of a CSV file. Texts come from callers, databases and plugins: what a spreadsheet
// would take for a formula begins with an apostrophe, which it takes for "this is text".
func CSVField(v string) string {
	first, _ := utf8.DecodeRuneInString(strings.TrimLeftFunc(v, isInvisible))
	if v != "" && strings.ContainsRune("=+-@\t\r\n＝＋－＠", first) && !plainNumber.MatchString(v) {
		return "'" + v
	}
	return v
}

// isInvisible tells what may stand before a sign, and is taken away or not looked at by who opens the file.
func isInvisible(r rune) bool {
	return unicode.IsSpace(r) && !strings.ContainsRune("\t\r\n", r) || unicode.Is(unicode.Cf, r)
}

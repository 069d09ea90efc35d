package executions

import "regexp"

// masked is what stands for a value.
const masked = "•••"

// What a database quotes of a row in its messages: texts, and the values of a key or a row in parentheses after "=" or
// "contains". Names are in double quotes, and stay. A number after $ is a parameter's.
var (
	quoted  = regexp.MustCompile(`'(?:[^']|'')*'`)
	tuple   = regexp.MustCompile(`(=|contains |: )\([^)]*\)`)
	numbers = regexp.MustCompile(`(^|[^$\w.])[-+]?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?\b`)
	// syntax is how Postgres quotes what it cannot read as a value of a type.
	syntax = regexp.MustCompile(`(invalid input (?:syntax|value) for [^:]*: )"[^"]*"`)
)

// Mask replaces the values in the message of an error or the text of a statement.
func Mask(text string) string {
	return numbers.ReplaceAllString(MaskQuoted(text), "${1}"+masked)
}

// MaskQuoted replaces the values that a database quotes, for sentences of our own that may repeat such a message: their
// bare numbers stay, which are figures.
func MaskQuoted(text string) string {
	text = syntax.ReplaceAllString(text, `${1}"`+masked+`"`)
	text = quoted.ReplaceAllString(text, "'"+masked+"'")
	return tuple.ReplaceAllString(text, "${1}("+masked+")")
}

// Mask replaces the values in the texts of a failure. Messages that differed in values alone become one.
func (f *Failure) Mask() {
	f.SQL = Mask(f.SQL)
	var examples []FailureExample
	at := map[string]int{}
	for _, e := range f.Examples {
		text := Mask(e.Message)
		i, known := at[text]
		if !known {
			i = len(examples)
			at[text], examples = i, append(examples, FailureExample{Message: text})
		}
		examples[i].Count += e.Count
	}
	f.Examples = append([]FailureExample{}, examples...)
}

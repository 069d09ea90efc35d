package executions

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// masked is what stands for a value.
const masked = "•••"

// Mask replaces the values in a message of a database: what it quotes, keys and rows in parentheses, numbers, dates,
// addresses of mail. What stays are its words, the names of tables, columns and other things that it calls by what
// they are (relation "orders"), the numbers of types (varchar(10)) and places (line 3), and figures with a unit
// (200ms). A text that has no value is returned as it is. Masking twice is masking once.
func Mask(text string) string { return mask(text, true) }

// MaskQuoted replaces the values that a database quotes, for sentences of our own that may repeat such a message: their
// bare numbers stay, which are figures.
func MaskQuoted(text string) string { return mask(text, false) }

// MaskMessages replaces the values in the messages of a failure, of one that was recorded before they were masked as
// they come. Messages that differed in values alone become one.
func (f *Failure) MaskMessages() {
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

// masker is the work on one text.
type masker struct {
	text string
	out  strings.Builder
	// done is how much of the text is in out; what of it stands for a value ends at ended.
	done, ended int
}

func mask(text string, figures bool) string {
	m := masker{text: text, ended: -1}
	for at := 0; at < len(text); {
		r, size := utf8.DecodeRuneInString(text[at:])
		switch {
		case closingQuotes(r) != "" && m.opens(at, r):
			at = m.quotation(at, size, r)
		case r == '(' && m.tuple(at):
			at = m.until(at+1, strings.LastIndexByte(text, ')'))
		case r == '(' && strings.HasSuffix(text[:at], ": "):
			end := strings.IndexByte(text[at:], ')')
			at = m.until(at+1, at+end)
		case figures && r == '$':
			for at++; at < len(text) && isDigit(text[at]); at++ {
			}
		case figures && r == '@':
			at = m.mail(at)
		case figures && m.number(at):
			at = m.figure(at)
		case isWordRune(r):
			at = m.word(at, figures)
		default:
			at += size
		}
	}
	if m.ended < 0 {
		return text
	}
	m.out.WriteString(text[m.done:])
	return m.out.String()
}

// replace puts a mask in the place of a part of the text, which may begin in what was written before.
func (m *masker) replace(from, to int) {
	from = max(from, m.done)
	if from >= to {
		return
	}
	if from != m.ended { // else it goes on what is masked already
		m.out.WriteString(m.text[m.done:from])
		m.out.WriteString(masked)
	}
	m.done, m.ended = to, to
}

// until masks up to an end, or all that is left where there is none before.
func (m *masker) until(from, end int) int {
	if end < from {
		end = len(m.text)
	}
	m.replace(from, end)
	return end
}

// closingQuotes are the runes that end what a quotation mark begins; "" of what is none.
func closingQuotes(r rune) string {
	switch r {
	case '\'', '"':
		return string(r)
	case '«':
		return "»"
	case '»':
		return "«"
	case '„':
		return "“”"
	case '“':
		return "”"
	case '‘':
		return "’"
	}
	return ""
}

// opens tells whether a mark begins a quotation: an apostrophe within a word does not.
func (m *masker) opens(at int, r rune) bool {
	before, size := utf8.DecodeLastRuneInString(m.text[:at])
	if r != '\'' || at == 0 || !isWordRune(before) {
		return true
	}
	// E'…' and the like
	further, _ := utf8.DecodeLastRuneInString(m.text[:at-size])
	return strings.ContainsRune("EeBbXxNn", before) && !isWordRune(further)
}

// quotation masks what stands in quotation marks, and returns the place after them. The mark that ends it is not
// followed by a letter: in 'it's' the second is a part of the value, and so are two.
func (m *masker) quotation(at, size int, r rune) int {
	ends := closingQuotes(r)
	from := at + size
	end, next := -1, len(m.text)
	for i := from; i < len(m.text); {
		c, n := utf8.DecodeRuneInString(m.text[i:])
		if !strings.ContainsRune(ends, c) {
			i += n
			continue
		}
		after, _ := utf8.DecodeRuneInString(m.text[i+n:])
		if after == c && (r == '\'' || r == '"') {
			i += 2 * n
			continue
		}
		if i+n == len(m.text) || !isWordRune(after) {
			end, next = i, i+n
			break
		}
		i += n
	}
	if end < 0 {
		end = len(m.text)
	}
	if noun := m.precedingWord(at); !nameKeywords[noun] || !isName(m.text[from:end], noun == "host") {
		m.replace(from, end)
	}
	return next
}

// nameKeywords are the words after which a database quotes a name, and no value.
var nameKeywords = func() map[string]bool {
	out := map[string]bool{}
	for w := range strings.FieldsSeq(`access aggregate catalog class collation column constraint conversion cursor database
		domain encoding extension field file function host identifier index language method near object
		operator option parameter partition policy portal procedure publication relation role rule schema
		sequence server slot stage statement subscription table tablespace template trigger type user view warehouse
		monitor`) {
		out[w] = true
	}
	return out
}()

// isName tells whether a quoted text can be a name. Digits alone are a value, but for the address of a host.
func isName(text string, digits bool) bool {
	const longest = 256
	if text == "" || len(text) > longest {
		return false
	}
	for _, r := range text {
		if !isWordRune(r) && !strings.ContainsRune(`$./:-`, r) {
			return false
		}
		digits = digits || unicode.IsLetter(r)
	}
	return digits
}

// precedingWord is the word before a place, in small letters; "" where something else is.
func (m *masker) precedingWord(at int) string {
	text := strings.TrimRight(m.text[:at], " ")
	begin := len(text)
	for begin > 0 && (text[begin-1] == '_' || text[begin-1]|0x20 >= 'a' && text[begin-1]|0x20 <= 'z') {
		begin--
	}
	const longest = 20
	if len(text)-begin > longest {
		return ""
	}
	return strings.ToLower(text[begin:])
}

// tuple tells whether a parenthesis holds the values of a key or a row.
func (m *masker) tuple(at int) bool {
	return strings.HasSuffix(m.text[:at], "=") || strings.HasSuffix(m.text[:at], "contains ")
}

// number tells whether a number begins at a place, which is not within a word.
func (m *masker) number(at int) bool {
	c := m.text[at]
	if before, _ := utf8.DecodeLastRuneInString(
		m.text[:at],
	); at > 0 &&
		(isWordRune(before) || before == '$' || before == '.') {
		return false
	}
	return isDigit(c) || (c == '-' || c == '+') && at+1 < len(m.text) && isDigit(m.text[at+1])
}

// figure masks a number, a date or another text that begins with a digit, unless it says how much, or where, or of
// which type.
func (m *masker) figure(at int) int {
	end := at + 1
	for end < len(m.text) {
		r, n := utf8.DecodeRuneInString(m.text[end:])
		if !isWordRune(r) && !strings.ContainsRune(".:-+%", r) {
			break
		}
		end += n
	}
	end = at + len(strings.TrimRight(m.text[at:end], ".:-+"))
	modifier := m.modifier(at)
	if !measured.MatchString(m.text[at:end]) && !places[m.precedingWord(at)] && !modifier {
		m.replace(at, end)
	}
	return end
}

// measured is a figure with its unit; places are words before a number that says where.
var (
	measured = regexp.MustCompile(`^\d+(?:\.\d+)?(?:%|[nuµm]?s|m|h|(?:\d+m)?\d+(?:\.\d+)?s|[kKMGT]i?B|B)$`)
	places   = map[string]bool{"line": true, "position": true, "precision": true, "scale": true, "sqlstate": true,
		"status": true}
)

// modifier tells whether a number is one of a type: varchar(10), numeric(5,2).
func (m *masker) modifier(at int) bool {
	text := m.text[:at]
	open := strings.LastIndexByte(text, '(')
	if open <= 0 || strings.Trim(text[open+1:], "0123456789, ") != "" {
		return false
	}
	c := text[open-1] | 0x20
	return c >= 'a' && c <= 'z'
}

// mail masks an address of mail around its @.
func (m *masker) mail(at int) int {
	local := func(r rune) bool { return !isWordRune(r) && r != '.' && r != '+' && r != '-' }
	from := strings.LastIndexFunc(m.text[:at], local)
	if from >= 0 {
		_, size := utf8.DecodeRuneInString(m.text[from:])
		from += size
	}
	from = max(from, 0)
	end := strings.IndexFunc(m.text[at+1:], local)
	if end < 0 {
		end = len(m.text) - at - 1
	}
	end = at + 1 + len(strings.TrimRight(m.text[at+1:at+1+end], ".-"))
	if from < at && end > at+1 {
		m.replace(from, end)
		return end
	}
	return at + 1
}

// word passes over a word; one that is a number in hexadecimal, as those of UUIDs, is masked.
func (m *masker) word(at int, figures bool) int {
	end, digits, hex := at, false, true
	for end < len(m.text) {
		r, n := utf8.DecodeRuneInString(m.text[end:])
		if !isWordRune(r) {
			break
		}
		digits = digits || r >= '0' && r <= '9'
		hex = hex && (r >= '0' && r <= '9' || r|0x20 >= 'a' && r|0x20 <= 'f')
		end += n
	}
	if figures && digits && hex && end-at >= 8 {
		m.replace(at, end)
	}
	return end
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isWordRune(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

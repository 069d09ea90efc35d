package sql

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Kind is the name of an error, as clients compare it.
type Kind string

// The errors of statements.
const (
	AlreadyExists                        Kind = "AlreadyExists"
	DoesNotExist                         Kind = "DoesNotExist"
	EmptySchema                          Kind = "EmptySchema"
	InvalidSchema                        Kind = "InvalidSchema"
	InvalidConfig                        Kind = "InvalidConfig"
	InvalidAddress                       Kind = "InvalidAddress"
	InvalidTopology                      Kind = "InvalidTopology"
	WorkerDoesNotExistForPhysical        Kind = "WorkerDoesNotExistForPhysical"
	WorkerDoesNotExistForSink            Kind = "WorkerDoesNotExistForSink"
	LogicalSourceDoesNotExistForPhysical Kind = "LogicalSourceDoesNotExistForPhysical"
	SourceTypeDoesNotExist               Kind = "SourceTypeDoesNotExist"
	SinkTypeDoesNotExist                 Kind = "SinkTypeDoesNotExist"
	SinkDoesNotExistForQuery             Kind = "SinkDoesNotExistForQuery"
	ReferencedPhysicalSourceExists       Kind = "ReferencedPhysicalSourceExists"
	ReferencedSourceExists               Kind = "ReferencedSourceExists"
	ReferencedSinkExists                 Kind = "ReferencedSinkExists"
	ReferencedQueryExists                Kind = "ReferencedQueryExists"
	ParserError                          Kind = "ParserError"
	BinderError                          Kind = "BinderError"
	OptimizerError                       Kind = "OptimizerError"
	PlacementError                       Kind = "PlacementError"
	NetworkError                         Kind = "NetworkError"
	InsufficientCapacity                 Kind = "InsufficientCapacity"
	NameLocked                           Kind = "NameLocked"
	Overloaded                           Kind = "Overloaded"
	StateLimit                           Kind = "StateLimit"
	ProtectedSource                      Kind = "ProtectedSource"
)

// Error is what is wrong with a statement, and where.
type Error struct {
	Kind    Kind
	Message string
	Hint    string
	// Line and Column count from 1, in characters; 0 where the error has no place.
	Line, Column int
	// Excerpt is the part of the line around the place, Caret as many blanks (and tabs) as lead to it.
	Excerpt, Caret string
	Cause          error
}

// Error is the whole message: kind, place, sentence, the line with a caret under the place, and the hint.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(string(e.Kind) + ": ")
	if e.Line > 0 {
		fmt.Fprintf(&b, "line %d, column %d: ", e.Line, e.Column)
	}
	b.WriteString(e.Message)
	if e.Excerpt != "" {
		b.WriteString("\n  " + e.Excerpt + "\n  " + e.Caret + "^")
	}
	if e.Hint != "" {
		b.WriteString("\n  hint: " + e.Hint)
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Cause }

// excerptRadius is how many characters of a long line are shown before and behind the place.
const excerptRadius = 60

// Errorf returns an error at a byte of source; at is negative where there is no place. The hint may be empty.
func Errorf(kind Kind, source string, at int, hint, format string, args ...any) *Error {
	e := &Error{Kind: kind, Message: fmt.Sprintf(format, args...), Hint: hint}
	if at < 0 || at > len(source) {
		return e
	}
	begin := strings.LastIndexByte(source[:at], '\n') + 1
	end := len(source)
	if n := strings.IndexByte(source[at:], '\n'); n >= 0 {
		end = at + n
	}
	e.Line = strings.Count(source[:at], "\n") + 1
	e.Column = utf8.RuneCountInString(source[begin:at]) + 1
	before, behind := []rune(source[max(begin, at-4*excerptRadius):at]), []rune(source[at:min(end, at+4*excerptRadius)])
	if len(before) > excerptRadius {
		before = append([]rune("…"), before[len(before)-excerptRadius:]...)
	}
	if len(behind) > excerptRadius {
		behind = append(behind[:excerptRadius:excerptRadius], '…')
	}
	e.Excerpt = harmless(string(before)) + harmless(string(behind))
	e.Caret = strings.Repeat(" ", len(before))
	return e
}

// harmless is text without what a terminal would obey; each character stays one.
func harmless(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return ' '
		}
		return r
	}, s)
}

// SameName reports whether two names are one.
func SameName(a, b string) bool { return strings.EqualFold(a, b) }

// Suggest is "did you mean X?" for the known word that is nearest to what was written, or nothing.
func Suggest(written string, known ...string) string {
	best, least := "", 1+len(written)/3
	for _, k := range known {
		if d := distance(strings.ToLower(written), strings.ToLower(k)); d <= least && d < max(len(k), 2) {
			if best == "" || d < least {
				best, least = k, d
			}
		}
	}
	if best == "" {
		return ""
	}
	return "did you mean " + best + "?"
}

// distance is how many letters have to be changed, added or removed.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	var above, here [65]int
	for j := range above {
		above[j] = j
	}
	for i := 1; i <= len(a); i++ {
		here[0] = i
		for j := 1; j <= len(b); j++ {
			change := above[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			here[j] = min(above[j]+1, here[j-1]+1, change)
		}
		above = here
	}
	return above[len(b)]
}

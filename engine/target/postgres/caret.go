package postgres

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// contextWidth is how many characters of a line are shown around an error.
const contextWidth = 100

// caretText shows the SQL that the server refused: where it said at which
// character, that line with a caret under it, and else the beginning.
func caretText(sql string, err error) string {
	var server *pgconn.PgError
	text := []rune(sql)
	if !errors.As(err, &server) || server.Position < 1 || int(server.Position) > len(text)+1 {
		out := "Its SQL is: " + shorten(sql)
		if server != nil {
			for _, more := range []string{server.Detail, server.Hint} {
				if more != "" {
					out += "\n" + more
				}
			}
		}
		return out
	}
	at := int(server.Position) - 1
	begin, end := at, at
	for begin > 0 && text[begin-1] != '\n' {
		begin--
	}
	for end < len(text) && text[end] != '\n' {
		end++
	}
	number := 1 + strings.Count(string(text[:begin]), "\n")
	if at-begin > contextWidth*2/3 {
		begin = at - contextWidth*2/3
	}
	end = min(end, begin+contextWidth)
	line := strings.Map(func(r rune) rune {
		if r == '\t' || r == '\r' {
			return ' '
		}
		return r
	}, string(text[begin:end]))
	out := fmt.Sprintf("Line %d of its SQL:\n    %s\n    %s^", number, line, strings.Repeat(" ", at-begin))
	if server.Hint != "" {
		out += "\n" + server.Hint
	}
	return out
}

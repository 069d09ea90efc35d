package dsn

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// setting is one parameter of a connection string, read as pgx reads it.
type setting struct {
	key, value string
	// from and to are where the value is written in the text.
	from, to int
}

// settings are the parameters of a connection string in the order of their
// writing; of several with one key the last counts.
type settings struct {
	list []setting
	url  bool
}

var errUnreadable = errors.New("neither a URL nor a list of key=value pairs")

const spaces = " \t\n\r\v\f"

// readSettings reads a connection string by the rules of libpq, as pgx has them;
// a test holds the two together. Its errors never repeat the text.
func readSettings(dsn string) (settings, error) {
	if strings.IndexByte(dsn, 0) >= 0 {
		return settings{}, errUnreadable
	}
	var s settings
	var err error
	begin := 0
	for _, scheme := range []string{"postgresql://", "postgres://"} {
		if strings.HasPrefix(dsn, scheme) {
			begin, s.url = len(scheme), true
		}
	}
	if s.url {
		if err := checkURL(dsn[begin:]); err != nil {
			return settings{}, err
		}
		s.list, err = readURL(dsn, begin)
	} else if s.list, err = readPairs(dsn); err == nil {
		err = checkPairs(s.list)
	}
	for _, p := range s.list {
		if !plainKey(p.key) || p.key == "user" && p.value == "" {
			err = errors.Join(err, errOddKey)
		}
	}
	return s, err
}

// errOddKey: pgx takes any text for a parameter's name, and an empty user. What is
// no name is rather a piece of something else.
var errOddKey = fmt.Errorf("%w: a parameter or the user has no name", errUnreadable)

func plainKey(key string) bool {
	return key != "" && strings.IndexFunc(key, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '.' && r != '$' &&
			r != '-'
	}) < 0
}

// effective returns the value of each parameter.
func (s settings) effective() map[string]string {
	m := make(map[string]string, len(s.list))
	aliased := false
	for _, p := range s.list {
		m[p.key] = p.value
		switch p.key {
		case "ssl":
			aliased = true
		case "sslmode":
			aliased = false
		}
	}
	// JDBC's ssl=true stands for sslmode=require, in URLs only.
	if s.url && m["ssl"] == "true" {
		delete(m, "ssl")
		if aliased {
			m["sslmode"] = "require"
		}
	}
	return m
}

func canonicalKey(key string) string {
	if key == "dbname" {
		return "database"
	}
	return key
}

// readPairs reads key=value pairs; a value may be quoted.
func readPairs(dsn string) (list []setting, err error) {
	at := 0
	skip := func() {
		for at < len(dsn) && strings.IndexByte(spaces, dsn[at]) >= 0 {
			at++
		}
	}
	for skip(); at < len(dsn); skip() {
		equals := strings.IndexByte(dsn[at:], '=')
		if equals < 0 {
			return nil, errUnreadable
		}
		key := strings.Trim(dsn[at:at+equals], spaces)
		if key == "" || strings.ContainsAny(key, spaces) {
			return nil, errUnreadable
		}
		at += equals + 1
		begins := at
		skip()
		spaced := at > begins
		p := setting{key: canonicalKey(key), from: at}
		if p.value, at, err = readValue(dsn, at, spaced); err != nil {
			return nil, err
		}
		p.to = at
		if p.key != "user" || p.value != "" {
			list = append(list, p)
		}
	}
	return list, nil
}

// readValue reads a value that begins at a place, with quotes around it or without, and returns the place behind it.
// spaced: there is a space between it and its equals sign.
func readValue(dsn string, at int, spaced bool) (text string, end int, err error) {
	var value strings.Builder
	if at < len(dsn) && dsn[at] == '\'' {
		for at++; at < len(dsn) && dsn[at] != '\''; {
			at = readCharacter(dsn, at, &value)
		}
		if at >= len(dsn) {
			return "", at, &ambiguousError{"a quote is never closed", pairsHint}
		}
		if at++; at < len(dsn) && strings.IndexByte(spaces, dsn[at]) < 0 {
			return "", at, &ambiguousError{"something follows a quote that closes, without a space between", pairsHint}
		}
		return value.String(), at, nil
	}
	for at < len(dsn) && strings.IndexByte(spaces, dsn[at]) < 0 {
		switch {
		case spaced && dsn[at] == '=' && isParameter(value.String()):
			return "", at, &ambiguousError{"a parameter seems to have no value: the next one would be it", pairsHint}
		case dsn[at] == '\'':
			return "", at, &ambiguousError{"there is a quote within a value that has none around it", pairsHint}
		}
		at = readCharacter(dsn, at, &value)
	}
	return value.String(), at, nil
}

// readCharacter adds a byte of a value, or the one that a backslash escapes, and returns the place behind it. A
// backslash at the end stands for nothing.
func readCharacter(dsn string, at int, value *strings.Builder) int {
	if dsn[at] == '\\' {
		if at++; at == len(dsn) {
			return at
		}
	}
	value.WriteByte(dsn[at])
	return at + 1
}

// isParameter reports a name that parameters have: what follows an equals sign and a space is rather the next one than
// a value. A password may hold other equals signs, and end with some.
func isParameter(name string) bool {
	name = strings.ToLower(name)
	return isSecret(name) || slices.Contains(Parameters, name) || name == "database" || name == "search_path"
}

// readURL reads a URL whose scheme ends at begin.
func readURL(dsn string, begin int) (list []setting, err error) {
	at := begin
	add := func(key string, from, to int) {
		value, wrong := decodeURL(dsn[from:to])
		err = errors.Join(err, wrong)
		list = append(list, setting{key, value, from, to})
	}
	if i := strings.IndexAny(dsn[at:], "@/"); i >= 0 && dsn[at+i] == '@' {
		end := at + i
		user, password, both := strings.Cut(dsn[at:end], ":")
		if user != "" {
			add("user", at, at+len(user))
		}
		if both && password != "" {
			add("password", at+len(user)+1, end)
		}
		at = end + 1
	}
	hosts, ports, rest, wrong := readHosts(dsn[at:])
	if wrong != nil {
		return nil, wrong
	}
	at = len(dsn) - len(rest)
	for _, p := range []struct{ key, text string }{{"host", hosts}, {"port", ports}} {
		if p.text != "" {
			value, wrong := decodeURL(p.text)
			err = errors.Join(err, wrong)
			list = append(list, setting{key: p.key, value: value, from: at, to: at})
		}
	}
	if strings.HasPrefix(rest, "/") {
		name, _, _ := strings.Cut(rest[1:], "?")
		if name != "" {
			add("database", at+1, at+1+len(name))
		}
		at += 1 + len(name)
	}
	if at < len(dsn) {
		at++ // the question mark
	}
	for at < len(dsn) {
		pair, _, _ := strings.Cut(dsn[at:], "&")
		key, value, ok := strings.Cut(pair, "=")
		if !ok || strings.Contains(value, "=") {
			return nil, errUnreadable
		}
		name, wrong := decodeURL(key)
		err = errors.Join(err, wrong)
		add(canonicalKey(name), at+len(key)+1, at+len(pair))
		at += len(pair) + 1
	}
	return list, err
}

// readHosts reads the hosts and ports of a URL as two lists, and returns what follows.
func readHosts(text string) (hosts, ports, rest string, err error) {
	rest = text
	until := func(stops string) string {
		i := strings.IndexAny(rest, stops)
		if i < 0 {
			i = len(rest)
		}
		taken := rest[:i]
		rest = rest[i:]
		return taken
	}
	for {
		if strings.HasPrefix(rest, "[") {
			end := strings.IndexByte(rest, ']')
			if end < 2 {
				return "", "", "", errUnreadable
			}
			hosts += rest[1:end]
			rest = rest[end+1:]
			if rest != "" && strings.IndexByte(":/?,", rest[0]) < 0 {
				return "", "", "", errUnreadable
			}
		} else {
			hosts += until(":/?,")
		}
		if strings.HasPrefix(rest, ":") {
			rest = rest[1:]
			ports += until("/?,")
		}
		if !strings.HasPrefix(rest, ",") {
			return hosts, ports, rest, nil
		}
		rest = rest[1:]
		hosts, ports = hosts+",", ports+","
	}
}

// decodeURL decodes a part of a URL as libpq does.
func decodeURL(raw string) (string, error) {
	raw = strings.Trim(raw, " ")
	var b strings.Builder
	for i := 0; i < len(raw); i++ {
		switch {
		case raw[i] == ' ':
			return "", errUnreadable
		case raw[i] != '%':
			b.WriteByte(raw[i])
		default:
			if i+2 >= len(raw) {
				return "", errUnreadable
			}
			high, low := strings.IndexByte(hexDigits, lower(raw[i+1])), strings.IndexByte(hexDigits, lower(raw[i+2]))
			if high < 0 || low < 0 || high+low == 0 {
				return "", errUnreadable
			}
			b.WriteByte(byte(high<<4 | low))
			i += 2
		}
	}
	return b.String(), nil
}

const hexDigits = "0123456789abcdef"

func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// encodeURL encodes everything but letters, digits and what is plain everywhere.
func encodeURL(text string) string {
	var b strings.Builder
	for i := range len(text) {
		c := text[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~*", c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// writePairs writes parameters as key='value' pairs.
func writePairs(m map[string]string) string {
	quote := strings.NewReplacer(`\`, `\\`, `'`, `\'`)
	var b strings.Builder
	for i, key := range slices.Sorted(maps.Keys(m)) {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%s='%s'", key, quote.Replace(m[key]))
	}
	return b.String()
}

// writeURL writes parameters as a URL; hosts that do not fit there go to its query.
func writeURL(m map[string]string) string {
	rest := maps.Clone(m)
	take := func(key string) string {
		value := rest[key]
		delete(rest, key)
		return encodeURL(value)
	}
	var b strings.Builder
	b.WriteString("postgres://")
	if user, password := m["user"], m["password"]; user != "" || password != "" {
		b.WriteString(take("user"))
		if password != "" {
			b.WriteString(":" + take("password"))
		}
		b.WriteByte('@')
	}
	host, port := m["host"], m["port"]
	plain := func(text string) bool {
		return strings.IndexFunc(text, func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '.' && r != '_'
		}) < 0
	}
	if host != "" && plain(host) && plain(port) {
		b.WriteString(take("host"))
		if port != "" {
			b.WriteString(":" + take("port"))
		}
	}
	if m["database"] != "" {
		b.WriteString("/" + take("database"))
	}
	separator := "?"
	if m["database"] == "" && len(rest) > 0 {
		separator = "/?"
	}
	for _, key := range slices.Sorted(maps.Keys(rest)) {
		name := key
		if key == "database" {
			name = "dbname"
		}
		b.WriteString(separator + encodeURL(name) + "=" + encodeURL(rest[key]))
		separator = "&"
	}
	return b.String()
}

// write returns a connection string with the parameters m, of the kind that s was.
func (s settings) write(m map[string]string) string {
	if s.url {
		text := writeURL(m)
		if again, err := readSettings(text); err == nil && maps.Equal(again.effective(), m) {
			return text
		}
	}
	return writePairs(m)
}

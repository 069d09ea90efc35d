package template

import (
	"bytes"
	"reflect"
	"regexp"
	"strings"
)

// maskedSecret stands in a comment where a secret stood.
const maskedSecret = "***"

var (
	// A password between a user and a host: scheme://user:secret@host, user:secret@account.
	addressSecret = regexp.MustCompile(`([^\s:@/'"]*:)([^\s/:][^\s]*|:[^\s]+)@([^\s])`)
	// A password by its name: password=secret, PGPASSWORD: secret, "token": "secret".
	namedSecret = regexp.MustCompile(
		`(?i)(\w*(?:password|passwd|pwd|passphrase|secret|token|api_?key|private_?key)["']?\s*[:=]\s*)('[^']*'|"[^"]*"|[^\s&;,]+)`,
	)
)

// MaskComments returns the document with what looks like a password in its
// comments replaced: a connection that was commented out is kept with the
// template, and nobody seals it. No value of the document changes; a text that
// cannot be read as one is returned as it is, and nothing of one in which values
// and comments that look like secrets are too many to tell apart.
func MaskComments(source []byte) []byte {
	if !bytes.ContainsRune(source, '#') {
		return source
	}
	lines := bytes.SplitAfter(source, []byte("\n"))
	masked, changed := make([][]byte, len(lines)), []int(nil)
	for i, line := range lines {
		if masked[i] = maskLine(line); !bytes.Equal(masked[i], line) {
			changed = append(changed, i)
		}
	}
	if len(changed) == 0 {
		return source
	}
	before, err := read(source)
	if err != nil {
		return source
	}
	same := func(text []byte) bool {
		after, err := read(text)
		return err == nil && sameTree(before, after)
	}
	if all := bytes.Join(masked, nil); same(all) {
		return all
	}
	// Some # stand in a value. As many documents are read as lines look like that, and
	// a document of more than these is not worth it: its comments go altogether.
	const most = 16
	if len(changed) > most {
		return nil
	}
	for _, i := range changed {
		kept := lines[i]
		lines[i] = masked[i]
		if !same(bytes.Join(lines, nil)) {
			lines[i] = kept
		}
	}
	return bytes.Join(lines, nil)
}

func sameTree(a, b *document) bool { return reflect.DeepEqual(a.root, b.root) }

// maskLine masks what follows the first # that may begin a comment.
func maskLine(line []byte) []byte {
	for at := 0; ; {
		i := bytes.IndexByte(line[at:], '#')
		if i < 0 {
			return line
		}
		if at += i; at == 0 || line[at-1] == ' ' || line[at-1] == '\t' {
			return append(line[:at:at], maskText(string(line[at:]))...)
		}
		at++
	}
}

func maskText(text string) string {
	text = namedSecret.ReplaceAllStringFunc(text, func(found string) string {
		parts := namedSecret.FindStringSubmatch(found)
		quote := ""
		if q := parts[2][:1]; q == "'" || q == `"` {
			quote = q
		}
		return parts[1] + quote + maskedSecret + quote
	})
	// The password ends at the last @ of the word.
	words := strings.SplitAfter(text, " ")
	for i, word := range words {
		words[i] = addressSecret.ReplaceAllString(word, "${1}"+maskedSecret+"@${3}")
	}
	return strings.Join(words, "")
}

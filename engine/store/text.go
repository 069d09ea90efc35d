package store

import (
	"bytes"
	"encoding/json"
	"strings"
)

// CleanText makes text from outside storable: without NUL, and UTF-8. What a
// target says cannot stop the recording.
func CleanText(s string) string {
	if strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(s, "\x00", "")
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// CleanDetails makes a log line's details storable; what is not JSON becomes a string.
func CleanDetails(raw json.RawMessage) json.RawMessage {
	if !json.Valid(raw) {
		// A string always marshals.
		text, _ := json.Marshal(CleanText(string(raw)))
		return text
	}
	return CleanJSON(raw)
}

// CleanJSON removes \u0000 from the strings of a JSON document, as CleanText does of text.
func CleanJSON(raw []byte) []byte {
	if !bytes.Contains(raw, []byte(`\u0000`)) {
		return raw
	}
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			out = append(out, raw[i])
			continue
		}
		if bytes.HasPrefix(raw[i:], []byte(`\u0000`)) {
			i += len(`\u0000`) - 1
			continue
		}
		// Any other escape: its second byte is not the start of one.
		out = append(out, raw[i])
		if i+1 < len(raw) {
			i++
			out = append(out, raw[i])
		}
	}
	return out
}

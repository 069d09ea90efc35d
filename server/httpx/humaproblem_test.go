package httpx

import "testing"

// TestWords are those of the form's user, not of the library that checks.
func TestWords(t *testing.T) {
	for message, want := range map[string]string{
		"expected length <= 64":                          "is longer than 64 characters",
		"expected length >= 1":                           "is empty",
		"expected number <= 9":                           "must be at most 9",
		"expected number >= 0":                           "must be at least 0",
		"expected string to be one line of text":         "must be one line of text",
		"expected value to be one of \"webhook, slack\"": "must be one of \"webhook, slack\"",
		"expected string":                                "must be string",
		"expected required property name to be present":  "is required",
		"unexpected property":                            "is not known here",
	} {
		if got := humaMessage(message); got != want {
			t.Errorf("%q becomes %q, want %q", message, got, want)
		}
	}
}

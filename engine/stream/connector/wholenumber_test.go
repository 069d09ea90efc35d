package connector

import (
	"fmt"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// TestWholeNumbersOfJSON: what is whole is written by its digits, and what is not, or too large, is left as it is.
func TestWholeNumbersOfJSON(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{"1.0": "1", "1": "1", "-3.000": "-3", "1e2": "100", "1.5e1": "15", "120e-1": "12",
		"0.0": "0", "-0.0": "0", "0e5": "0", "1.5": "1.5", "1e-1": "1e-1", "1e400": "1e400", "true": "true", "10.0": "10"} {
		if got := string(wholeNumber([]byte(raw))); got != want {
			t.Errorf("%s is %s, want %s", raw, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		raw := fmt.Sprintf("%d.%se%d", rapid.IntRange(-9999, 9999).Draw(t, "whole"),
			rapid.StringMatching(`[0-9]{1,6}`).Draw(t, "fraction"), rapid.IntRange(-8, 8).Draw(t, "exponent"))
		is, _ := new(big.Rat).SetString(raw)
		got := string(wholeNumber([]byte(raw)))
		parsed, ok := new(big.Int).SetString(got, 10)
		if ok != is.IsInt() || ok && new(big.Rat).SetInt(parsed).Cmp(is) != 0 {
			t.Fatalf("%s is %s", raw, got)
		}
	})
}

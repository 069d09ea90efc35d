package executions

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestMask: messages as databases word them.
func TestMask(t *testing.T) {
	for in, want := range map[string]string{
		``: ``,
		// Names of things stay, and so do numbers that are of a type or a place.
		`duplicate key value violates unique constraint "orders_2_pkey"`:                     ``,
		`relation "public.orders" does not exist`:                                            ``,
		`null value in column "name" of relation "orders" violates not-null constraint`:      ``,
		`value too long for type character varying(10)`:                                      ``,
		`numeric field overflow: precision 5, scale 2`:                                       ``,
		`syntax error at or near "SELEC" at line 3, position 14`:                             ``,
		`password authentication failed for user "bench"`:                                    ``,
		`no pg_hba.conf entry for host "10.0.0.7", user "bench", database "shop"`:            ``,
		`SQL compilation error: Object 'SHOP.PUBLIC.ORDERS' does not exist`:                  ``,
		`Warehouse 'LOAD_WH' was suspended`:                                                  ``,
		`statement given up: no answer within the statement timeout of 1.5s`:                 ``,
		`more than 64 MB and 10MB of memory, 50% of it`:                                      `more than ••• MB and 10MB of memory, 50% of it`,
		`the account answered with status 503`:                                               ``,
		`column "a" is of type integer but expression is of type text (SQLSTATE 42804)`:      ``,
		`Loadstone can't find the user's row`:                                                ``,
		`could not open file "base/5/2619": No such file or directory`:                       ``,
		`parameter $1 and $12 of orders_2`:                                                   ``,
		`sorry, too many clients already`:                                                    ``,
		`no record of a lost connection ("orders")`:                                          `no record of a lost connection ("•••")`,
		`Key (id, name)=(42, Ann Smith) already exists.`:                                     `Key (id, name)=(•••) already exists.`,
		`Key (note)=(a) b) c) already exists.`:                                               `Key (note)=(•••) already exists.`,
		`Failing row contains (7, null, secret).`:                                            `Failing row contains (•••).`,
		`Key (id)=(42, cut off in the mid`:                                                   `Key (id)=(•••`,
		`invalid input syntax for type integer: "0815 Ann"`:                                  `invalid input syntax for type integer: "•••"`,
		`invalid input value for enum mood: "sad"`:                                           `invalid input value for enum mood: "•••"`,
		`value "99999999999" is out of range for type integer`:                               `value "•••" is out of range for type integer`,
		`date/time field value out of range: "2024-13-01"`:                                   `date/time field value out of range: "•••"`,
		`malformed array literal: "{Ann,"`:                                                   `malformed array literal: "•••"`,
		`invalid input syntax for type json: "it said ""Ann"" here" again`:                   `invalid input syntax for type json: "•••" again`,
		`invalid input syntax for type date: "Ann` + "\n" + `Smith`:                          `invalid input syntax for type date: "•••`,
		`invalid byte sequence for encoding "UTF8": 0xff 0x41`:                               `invalid byte sequence for encoding "UTF8": ••• •••`,
		`value 12.5 is out of range, or -3`:                                                  `value ••• is out of range, or •••`,
		`between 2024-01-05 10:33:12.5+02 and 1e5`:                                           `between ••• ••• and •••`,
		`customer 4711 of 0f47ac10b-58cc-4372 and f47ac10b-58cc-4372-a567-0e02b2c3d479 left`: `customer ••• of ••• and •••-••• left`,
		`mail to ann.smith+x@mail.example.com, and to "b"@c bounced`:                         `mail to •••, and to "•••"@c bounced`,
		`Numeric value 'abc' is not recognized`:                                              `Numeric value '•••' is not recognized`,
		`Numeric value 'it's Ann's' is not recognized`:                                       `Numeric value '•••' is not recognized`,
		`can't read 'Ann' or 'it''s' or E'Bob'`:                                              `can't read '•••' or '•••' or E'•••'`,
		`column 'O'Brien, Ann' is too long`:                                                  `column '•••' is too long`,
		`String 'never closed`:                                                               `String '•••`,
		`ungültige Eingabesyntax für Typ integer: »Ann«, „Bob“, «Zoé»`:                       `ungültige Eingabesyntax für Typ integer: »•••«, „•••“, «•••»`,
		`table "2024" is full`:                                                               `table "•••" is full`,
	} {
		if want == "" {
			want = in
		}
		if got := Mask(in); got != want {
			t.Errorf("%q becomes %q, not %q", in, got, want)
		}
	}
	for in, want := range map[string]string{
		`16 connections are open, and "Ann" of relation "orders" is (7)`: `16 connections are open, and "•••" of relation "orders" is (7)`,
		`dial tcp 127.0.0.1:5432: connect: connection refused`:           `dial tcp 127.0.0.1:5432: connect: connection refused`,
		`it failed: Key (id)=(7) exists`:                                 `it failed: Key (id)=(•••) exists`,
	} {
		if got := MaskQuoted(in); got != want {
			t.Errorf("of a sentence of ours, %q becomes %q, not %q", in, got, want)
		}
	}
	for in, want := range map[string]string{
		`SELECT "Name" FROM t1 WHERE a = $1 AND b = 'it''s' LIMIT 10`: `SELECT "Name" FROM t1 WHERE a = $1 AND b = '•••' LIMIT •••`,
		`SELECT $$Ann$$, $2`:                      `SELECT $$•••$$, $2`,
		`$$it's$$, 'secret'`:                      `$$•••$$, '•••'`,
		`"a'b", 'secret'`:                         `"a'b", '•••'`,
		`E'it\'s secret', e'a''b', type'x'`:       `E'•••', e'•••', type'•••'`,
		`$q$secret$q$ $é1$$$'$é1$ a$1 $1`:         `$q$•••$q$ $é1$•••$é1$ a$1 $1`,
		"a -- secret 'x\nb /* c /* d */ e */ 'f'": "a --•••\nb /*•••*/ '•••'",
		`0xsecret 1e-5 .5 -7 a-7 t.1 :name x1`:    `••• ••• ••• ••• a-••• t.••• :name x1`,
		`'a\' OR b = ' OR secret`:                 `•••`,
		`SELECT 'never ends, "secret"`:            `SELECT •••`,
		"`a'b` = 'secret' /* ends never":          "`a'b` = '•••' •••",
		`N'secret' U&'secret' a = "never`:         `N'•••' U&'•••' a = •••`,
	} {
		if got := MaskSQL(in); got != want {
			t.Errorf("the statement %q becomes %q, not %q", in, got, want)
		}
	}
	f := Failure{Examples: []FailureExample{{"Key (id)=(1) already exists.", 2}, {"Key (id)=(2) already exists.", 1}}}
	if f.MaskMessages(); len(f.Examples) != 1 || f.Examples[0].Count != 3 {
		t.Errorf("%+v", f)
	}
}

// TestMaskSQLHidesConstants: whatever a constant is, nothing of it is left, however it is written and whatever stands
// beside it; and masking twice is masking once.
func TestMaskSQLHidesConstants(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := ""
		for i := range rapid.IntRange(1, 5).Draw(t, "pieces") {
			secret := rapid.StringMatching(`[ '"$`+"`"+`\\a-z0-9/*\n-]{0,6}`).Draw(t, fmt.Sprint("value ", i)) + "kanari"
			doubled := strings.ReplaceAll(secret, "'", "''")
			escaped := strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(secret)
			ways := []string{"'" + doubled + "'", "E'" + escaped + "'", "-- kanari' $$ \"\n", "/* kanari' $$ -- */",
				`"a'b$$--/*"`, "$1", " a ", " = 0xkanari "}
			if !strings.Contains(secret, "$") {
				ways = append(ways, "$$"+secret+"$$", "$a$"+secret+"$$ $b$ $a$")
			}
			text += rapid.SampledFrom(ways).Draw(t, fmt.Sprint("way ", i)) + rapid.SampledFrom([]string{" ", ", ", "\n", "("}).
				Draw(t, fmt.Sprint("between ", i))
		}
		once := MaskSQL(text)
		if strings.Contains(once, "kanari") {
			t.Errorf("%q becomes %q", text, once)
		}
		if twice := MaskSQL(once); twice != once {
			t.Errorf("%q becomes %q", once, twice)
		}
	})
}

// TestMaskHidesWhatIsQuoted: whatever a value is, of what a database says of it in one of its ways nothing is left;
// and masking twice is masking once.
func TestMaskHidesWhatIsQuoted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secret := "kanari" + rapid.StringMatching(`[a-z]{3}`).Draw(t, "secret")
		value := rapid.StringMatching(`[ '"()a-z0-9.,:;=$@«„-]{0,8}`).Draw(t, "before") + secret +
			rapid.StringMatching(`[ ,:;=$@0-9.-]{0,4}`).Draw(t, "behind")
		doubled := strings.NewReplacer(`'`, `''`, `"`, `""`).Replace(value)
		for _, message := range []string{`Key (a)=(` + value + `) already exists.`, `Failing row contains (1, ` + value + `).`,
			`invalid input syntax for type integer: "` + doubled + `"`, `String '` + doubled + `' is too long`,
			`invalid input value for enum mood: "` + doubled + `" in 5`} {
			once := Mask(message)
			if strings.Contains(once, secret) {
				t.Errorf("%q becomes %q", message, once)
			}
			if twice := Mask(once); twice != once {
				t.Errorf("%q becomes %q, and that %q", message, once, twice)
			}
		}
		text := rapid.String().Draw(t, "any text")
		if once := Mask(text); Mask(once) != once {
			t.Errorf("%q becomes %q, and that %q", text, once, Mask(once))
		}
	})
}

func BenchmarkMask(b *testing.B) {
	for name, text := range map[string]string{
		"nothing": `could not serialize access due to concurrent update`,
		"a name":  `duplicate key value violates unique constraint "orders_pkey"`,
		"a value": `invalid input syntax for type integer: "0815 Ann Smith"`,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Mask(text)
			}
		})
	}
}

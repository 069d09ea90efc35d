package executions

import "testing"

func TestMask(t *testing.T) {
	for in, want := range map[string]string{
		`duplicate key value violates unique constraint "orders_2_pkey"`: `duplicate key value violates unique constraint "orders_2_pkey"`,
		`Key (id, name)=(42, Ann Smith) already exists.`:                 `Key (id, name)=(•••) already exists.`,
		`Failing row contains (7, null, secret).`:                        `Failing row contains (•••).`,
		`invalid input syntax for type integer: "0815 Ann"`:              `invalid input syntax for type integer: "•••"`,
		`value 12.5 is out of range, or -3`:                              `value ••• is out of range, or •••`,
		`SELECT * FROM t1 WHERE a = $1 AND b = 'it''s' LIMIT 10`:         `SELECT * FROM t1 WHERE a = $1 AND b = '•••' LIMIT •••`,
		``: ``,
	} {
		if got := Mask(in); got != want {
			t.Errorf("%q becomes %q, not %q", in, got, want)
		}
	}
	f := Failure{Examples: []FailureExample{{"Key (id)=(1) already exists.", 2}, {"Key (id)=(2) already exists.", 1}}}
	if f.Mask(); len(f.Examples) != 1 || f.Examples[0].Count != 3 {
		t.Errorf("%+v", f.Examples)
	}
}

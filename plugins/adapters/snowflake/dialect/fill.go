package dialect

import (
	"errors"
	"strconv"

	"github.com/loadstone-db/loadstone/sdk"
)

// FillExpression writes the value of a column for the row N, which counts from 0.
func FillExpression(c *sdk.LogicalColumn, position int) (string, error) {
	f := c.Fill
	num := func(n int64) string { return strconv.FormatInt(n, 10) }
	// draw is a number from 0 to n-1 of the row and the column.
	draw := func(n int64, salt int) string {
		return "MOD(ABS(HASH(N, " + strconv.Itoa(100*position+salt) + ")), " + num(n) + ")"
	}
	switch f.As {
	case sdk.FillNumber, sdk.FillBlock:
		text := num(f.From) + " + N"
		if f.As == sdk.FillBlock {
			if f.Step <= 0 {
				return "", errors.New("a block has at least one row")
			}
			text = num(f.From) + " + FLOOR(N / " + num(f.Step) + ")"
		}
		if c.Type != sdk.Text {
			return text, nil
		}
		// LPAD would cut longer numbers.
		text = "TO_VARCHAR(" + text + ")"
		if f.Min > 1 {
			text = "LPAD(" + text + ", GREATEST(" + num(f.Min) + ", LENGTH(" + text + ")), '0')"
		}
		if f.Prefix != "" {
			text = Literal(f.Prefix) + " || " + text
		}
		return text, nil
	case sdk.FillConstant:
		if len(f.Values) == 0 {
			return "NULL", nil
		}
		return constant(c, f.Values[0])
	case sdk.FillInteger:
		if f.Max < f.Min || f.Max-f.Min < 0 {
			return "", errors.New("its integers have no range")
		}
		return num(f.Min) + " + " + draw(f.Max-f.Min+1, 0), nil
	case sdk.FillDecimal:
		scale := int64(1)
		for range f.Scale {
			scale *= 10
		}
		if f.Max <= f.Min || f.Scale < 0 || f.Scale > 9 || f.Max-f.Min > 1_000_000_000 {
			return "", errors.New("its decimals have no range")
		}
		return "CAST(" + num(f.Min) + " + " + draw((f.Max-f.Min)*scale, 0) + " / " + num(scale) + " AS NUMBER(38," +
			num(f.Scale) + "))", nil
	case sdk.FillChoice:
		if len(f.Values) == 0 {
			return "", errors.New("it has nothing to choose from")
		}
		text := "CASE " + draw(int64(len(f.Values)), 0)
		for i, v := range f.Values {
			value, err := constant(c, v)
			if err != nil {
				return "", err
			}
			text += " WHEN " + strconv.Itoa(i) + " THEN " + value
		}
		return text + " END", nil
	case sdk.FillLetters:
		if f.Min < 0 || f.Max < f.Min {
			return "", errors.New("its letters have no length")
		}
		length := num(f.Min)
		if f.Max > f.Min {
			length += " + " + draw(f.Max-f.Min+1, 1)
		}
		return "RANDSTR(" + length + ", HASH(N, " + strconv.Itoa(100*position) + "))", nil
	case sdk.FillTime:
		step := "N * " + num(f.Step)
		if f.Max > 0 {
			step = "MOD(" + step + ", " + num(f.Max) + ")"
		}
		return "TO_TIMESTAMP_NTZ(" + num(f.From) + " + " + step + ", 6)", nil
	}
	return "", errors.New("it is filled as " + strconv.Quote(f.As) + ", which this version does not know")
}

// constant writes a value of the manifest in the column's type.
func constant(c *sdk.LogicalColumn, v string) (string, error) {
	switch c.Type {
	case sdk.I64:
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil {
			return "", errors.New(strconv.Quote(v) + " is not a whole number")
		}
		return strconv.FormatInt(n, 10), nil
	case sdk.Text:
		return Literal(v), nil
	}
	return "", errors.New("constants are whole numbers and text")
}

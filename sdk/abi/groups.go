package abi

import "strconv"

// CheckGroups checks what Decode does not: that at most max operations were
// written (a transaction that begins before that may end after it), that every
// transaction is whole and within its limits, and that every ref names an earlier
// operation of its transaction and a column that its statement declares. columns returns
// how many a statement declares. The host checks the same.
func CheckGroups(ops []Op, max int, columns func(statement uint16) int) error {
	begin := -1
	for i, op := range ops {
		if i >= max && begin < 0 {
			return malformed(strconv.Itoa(len(ops)) + " operations, asked for " + strconv.Itoa(max))
		}
		at := "operation " + strconv.Itoa(i) + " "
		inside := i - begin - 1
		switch op.Statement {
		case StatementBegin:
			if begin >= 0 {
				return malformed(at + "is BEGIN inside a transaction; transactions do not nest")
			}
			begin = i
		case StatementCommit, StatementRollback:
			switch {
			case begin < 0:
				return malformed(at + "ends a transaction, but none has begun")
			case inside == 0:
				return malformed(at + "ends a transaction that holds no operation")
			case inside > MaxGroupOps:
				return malformed("a transaction holds " + strconv.Itoa(inside) + " operations, the limit is " +
					strconv.Itoa(MaxGroupOps))
			}
			begin = -1
		case StatementDelay:
			if begin >= 0 {
				return malformed(at + "is DELAY inside a transaction; think time belongs between transactions")
			}
		}
		for _, v := range op.Args {
			if v.Type != TypeRef {
				continue
			}
			k, c := int(v.I>>8), int(v.I&0xff)
			switch {
			case begin < 0 || op.Statement >= FirstControl:
				return malformed(at + "has a ref but is in no transaction")
			case k >= inside:
				return malformed(at + "refers to operation " + strconv.Itoa(k) + " of its transaction, but is operation " +
					strconv.Itoa(inside) + " itself")
			case c >= columns(ops[begin+1+k].Statement):
				return malformed(at + "refers to column " + strconv.Itoa(c) + " of a statement that declares fewer columns")
			}
		}
	}
	if begin >= 0 {
		return malformed("the transaction that begins at operation " + strconv.Itoa(begin) + " has no end")
	}
	return nil
}

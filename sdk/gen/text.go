package gen

const hexDigits = "0123456789abcdef"

// UUIDSize is the length of a UUID as text.
const UUIDSize = 36

// UUID writes a version 4 UUID of these bits into s, which must hold UUIDSize bytes.
func UUID(s []byte, hi, lo uint64) {
	hi = hi&^0xf000 | 0x4000
	lo = lo&^(3<<62) | 1<<63
	at := 0
	for i := 0; i < 32; i++ {
		if i == 8 || i == 12 || i == 16 || i == 20 {
			s[at] = '-'
			at++
		}
		if i < 16 {
			s[at] = hexDigits[hi>>(60-4*i)&15]
		} else {
			s[at] = hexDigits[lo>>(124-4*i)&15]
		}
		at++
	}
}

// Digits fills s with the last decimal digits of n, zeros in front. strconv is
// slow where guests run.
func Digits(s []byte, n uint64) {
	for i := len(s) - 1; i >= 0; i-- {
		q := n / 10
		s[i] = byte('0' + n - q*10)
		n = q
	}
}

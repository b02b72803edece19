package trigram

import (
	"cmp"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"math/bits"
	"os"
	"slices"
	"sort"
)

// A segment is one file:
//
//	postings   for each trigram the groups that hold it: the gaps between their numbers as varints, or a bitmap where that is shorter
//	grams      12 bytes for each trigram, ascending: the trigram, the number of groups, the offset of its postings (or the only group)
//	documents  for each folder its path, then its documents with their states and groups
//	checksums  CRC-32C of each block of the parts above
//	footer     sizes of the parts, the length of the root's path, checksums of the checksums and of the footer
//
// Nothing of it is mapped into memory: a mapped file that another program cuts off ends the process. What is read is read in blocks whose
// checksum is compared each time, so damage is an error and never a wrong answer.
const (
	magic      = "pilltri1" // the last character is the version of the format
	blockSize  = 16 << 10   // bytes under one checksum
	gramSize   = 12         // bytes of an entry of grams
	footerSize = 80         // bytes
	sampled    = 256        // every so many-th trigram is kept in memory, to read one block in a look-up
)

// ErrDamaged is the error of a segment whose content is not what was written.
var ErrDamaged = errors.New("the search index is damaged")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// State tells whether a file is what it was: two equal states of a path mean equal content, unless the file was written within the
// resolution of the file system's clock. Times are nanoseconds since 1970.
type State struct {
	Size, Modified, Changed int64
	Inode                   uint64
}

// Doc is one document of a segment.
type Doc struct {
	Name  string // without its folder
	State State  // as it was when its text was read
	Group int
}

// Set is a set of groups.
type Set []uint64

// newSet returns a set for n groups, all of them where full is set.
func newSet(n int, full bool) Set {
	s := make(Set, (n+63)/64)
	if full {
		for i := range n {
			s.add(i)
		}
	}
	return s
}

// Has reports whether the group is in the set.
func (s Set) Has(group int) bool { return s[group>>6]>>(group&63)&1 != 0 }

func (s Set) add(group int) { s[group>>6] |= 1 << (group & 63) }

// count is the number of groups in the set.
func (s Set) count() int {
	n := 0
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

// footer is the end of a segment.
type footer struct {
	groups, grams, docs          int64 // numbers
	gramsAt, docsAt, rootAt, end int64 // offsets: the postings begin at 0, the checksums at end
	checks                       uint32
}

// Segment is an open segment. It is safe for concurrent use; after Close every call is an error.
type Segment struct {
	f      *os.File
	sums   []uint32 // by block
	sample []uint32 // every sampled-th trigram
	foot   footer
}

// Open opens a segment and checks everything but its blocks, which are checked when they are read.
func Open(path string) (*Segment, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	s := &Segment{f: f}
	if err := s.load(); err != nil {
		f.Close()
		return nil, err
	}
	return s, nil
}

// load reads the footer, the checksums and the sample.
func (s *Segment) load() error {
	info, err := s.f.Stat()
	if err != nil {
		return err
	}
	var raw [footerSize]byte
	if !info.Mode().IsRegular() || info.Size() < footerSize {
		return ErrDamaged
	}
	if _, err := s.f.ReadAt(raw[:], info.Size()-footerSize); err != nil {
		return err
	}
	if err := s.foot.parse(raw[:]); err != nil {
		return err
	}
	blocks := (s.foot.end + blockSize - 1) / blockSize
	if s.foot.end+blocks*4+footerSize != info.Size() {
		return ErrDamaged
	}
	table := make([]byte, blocks*4)
	if _, err := s.f.ReadAt(table, s.foot.end); err != nil {
		return err
	}
	if crc32.Checksum(table, castagnoli) != s.foot.checks {
		return ErrDamaged
	}
	s.sums = make([]uint32, blocks)
	for i := range s.sums {
		s.sums[i] = binary.LittleEndian.Uint32(table[i*4:])
	}
	return s.readSample()
}

// readSample keeps every sampled-th trigram.
func (s *Segment) readSample() error {
	in := s.reader(s.foot.gramsAt, s.foot.gramsAt+s.foot.grams*gramSize)
	last := int64(-1)
	for i := range s.foot.grams {
		e, err := in.next(gramSize)
		if err != nil {
			return err
		}
		g, _ := entry(e)
		if int64(g) <= last {
			return ErrDamaged
		}
		if last = int64(g); i%sampled == 0 {
			s.sample = append(s.sample, g)
		}
	}
	return nil
}

// Close closes the file.
func (s *Segment) Close() error { return s.f.Close() }

// Groups is the number of groups; they are numbered from 0.
func (s *Segment) Groups() int { return int(s.foot.groups) }

// Docs is the number of documents.
func (s *Segment) Docs() int { return int(s.foot.docs) }

// Size is the length of the file in bytes.
func (s *Segment) Size() int64 { return s.foot.end + int64(len(s.sums))*4 + footerSize }

// Root is the folder whose documents these are.
func (s *Segment) Root() (string, error) {
	b, err := s.read(s.foot.rootAt, s.foot.end)
	return string(b), err
}

// Match returns a superset of the groups with a document that the query accepts.
func (s *Segment) Match(q Query) (Set, error) { return s.match(q, newSet(s.Groups(), true)) }

// enough is how few groups are searched at once instead of looking up further trigrams.
const enough = 4

// match returns the groups of within that may match. The rarest demands come first, as the following ones have less left to exclude.
func (s *Segment) match(q Query, within Set) (Set, error) {
	switch q.op {
	case nothing:
		return newSet(s.Groups(), false), nil
	case gram:
		l, err := s.find(q.gram)
		if err != nil {
			return nil, err
		}
		return s.groups(l, within)
	case and:
		parts, err := s.estimate(q.sub)
		if err != nil {
			return nil, err
		}
		for _, p := range parts {
			if within, err = s.match(p.q, within); err != nil {
				return nil, err
			}
			if within.count() <= enough {
				break
			}
		}
		return within, nil
	case or:
		out := newSet(s.Groups(), false)
		for _, sub := range q.sub {
			part, err := s.match(sub, within)
			if err != nil {
				return nil, err
			}
			for i := range out {
				out[i] |= part[i]
			}
		}
		return out, nil
	}
	return within, nil
}

// part is a demand with the most groups that can meet it.
type part struct {
	q    Query
	most int64
}

// estimate sorts demands by how few groups meet them.
func (s *Segment) estimate(qs []Query) ([]part, error) {
	var parts []part
	for _, q := range qs {
		n, err := s.most(q)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part{q, n})
	}
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(a.most, b.most) })
	return parts, nil
}

// most is an upper bound of the groups that meet a demand.
func (s *Segment) most(q Query) (int64, error) {
	switch q.op {
	case nothing:
		return 0, nil
	case gram:
		l, err := s.find(q.gram)
		return l.count, err
	case and, or:
		least, sum := s.foot.groups, int64(0)
		for _, sub := range q.sub {
			n, err := s.most(sub)
			if err != nil {
				return 0, err
			}
			least, sum = min(least, n), sum+n
		}
		if q.op == and {
			return least, nil
		}
		return min(sum, s.foot.groups), nil
	}
	return s.foot.groups, nil
}

// list is where the groups of a trigram are. Of a single group there is no list, at is its number.
type list struct{ count, at int64 }

// entry reads an entry of grams: the trigram and the high bits of the offset, the number of groups, the rest of the offset.
func entry(b []byte) (g uint32, l list) {
	word := binary.LittleEndian.Uint32(b)
	return word >> 8, list{int64(binary.LittleEndian.Uint32(b[4:])), int64(word&0xff)<<32 | int64(binary.LittleEndian.Uint32(b[8:]))}
}

// find looks a trigram up; the list of one that no document holds is empty.
func (s *Segment) find(g uint32) (list, error) {
	i, ok := slices.BinarySearch(s.sample, g)
	if !ok {
		i--
	}
	if i < 0 {
		return list{}, nil
	}
	from := int64(i) * sampled
	n := min(sampled, s.foot.grams-from)
	b, err := s.read(s.foot.gramsAt+from*gramSize, s.foot.gramsAt+(from+n)*gramSize)
	if err != nil {
		return list{}, err
	}
	at := sort.Search(int(n), func(i int) bool { have, _ := entry(b[i*gramSize:]); return have >= g })
	if at == int(n) {
		return list{}, nil
	}
	have, l := entry(b[at*gramSize:])
	if have != g {
		return list{}, nil
	}
	if l.count < 1 || l.count > s.foot.groups || l.count == 1 && l.at >= s.foot.groups {
		return list{}, ErrDamaged
	}
	return l, nil
}

// groups reads a list and returns its groups that are in within.
func (s *Segment) groups(l list, within Set) (Set, error) {
	out := newSet(s.Groups(), false)
	switch {
	case l.count == 0:
		return out, nil
	case l.count == 1:
		out.add(int(l.at))
	case dense(l.count, s.foot.groups):
		b, err := s.read(l.at, l.at+(s.foot.groups+7)/8)
		if err != nil {
			return nil, err
		}
		for i, x := range b {
			out[i/8] |= uint64(x) << (i % 8 * 8)
		}
	default:
		in := s.reader(l.at, s.foot.gramsAt)
		group := uint64(0)
		for i := range l.count {
			gap, err := in.uvarint()
			if err != nil {
				return nil, err
			}
			if group += gap; group >= uint64(s.foot.groups) || i > 0 && gap == 0 {
				return nil, ErrDamaged
			}
			out.add(int(group))
		}
	}
	for i := range out {
		out[i] &= within[i]
	}
	return out, nil
}

// dense reports whether a list is kept as a bitmap: a gap takes a byte at least.
func dense(count, groups int64) bool { return count > groups/8 }

// Each calls yield for each folder and its documents, in the order in which they were added, until it returns false. The path is relative to
// the root, with slashes; docs is reused.
func (s *Segment) Each(yield func(folder string, docs []Doc) bool) error {
	in := s.reader(s.foot.docsAt, s.foot.rootAt)
	var docs []Doc
	for total := int64(0); total < s.foot.docs; total += int64(len(docs)) {
		folder, err := in.text()
		if err != nil {
			return err
		}
		n, err := in.uvarint()
		if err != nil {
			return err
		}
		if n == 0 || n > uint64(s.foot.docs-total) {
			return ErrDamaged
		}
		docs = docs[:0]
		for range n {
			d, err := in.doc()
			if err != nil {
				return err
			}
			if d.Group < 0 || int64(d.Group) >= s.foot.groups {
				return ErrDamaged
			}
			docs = append(docs, d)
		}
		if !yield(folder, docs) {
			return nil
		}
	}
	return nil
}

// read returns bytes of the checked parts.
func (s *Segment) read(from, to int64) ([]byte, error) {
	if from < 0 || to < from || to > s.foot.end {
		return nil, ErrDamaged
	}
	first := from / blockSize
	start, end := first*blockSize, min((to+blockSize-1)/blockSize*blockSize, s.foot.end)
	b := make([]byte, end-start)
	if _, err := s.f.ReadAt(b, start); err != nil {
		if err == io.EOF { // cut off since it was opened
			err = ErrDamaged
		}
		return nil, err
	}
	for i := int64(0); i*blockSize < int64(len(b)); i++ {
		if crc32.Checksum(b[i*blockSize:min((i+1)*blockSize, int64(len(b)))], castagnoli) != s.sums[first+i] {
			return nil, ErrDamaged
		}
	}
	return b[from-start : to-start], nil
}

// reader reads a part from its beginning, a block at a time.
func (s *Segment) reader(from, to int64) *partReader { return &partReader{s: s, at: from, to: to} }

type partReader struct {
	s      *Segment
	buf    []byte // read and not yet given out
	at, to int64  // what is not read yet
}

// fill appends the next block to buf.
func (r *partReader) fill() error {
	if r.at >= r.to {
		return ErrDamaged
	}
	end := min((r.at/blockSize+1)*blockSize, r.to)
	b, err := r.s.read(r.at, end)
	if err != nil {
		return err
	}
	if r.at = end; len(r.buf) == 0 {
		r.buf = b
	} else {
		r.buf = append(r.buf[:len(r.buf):len(r.buf)], b...)
	}
	return nil
}

// next returns the following n bytes.
func (r *partReader) next(n int) ([]byte, error) {
	for len(r.buf) < n {
		if err := r.fill(); err != nil {
			return nil, err
		}
	}
	out := r.buf[:n]
	r.buf = r.buf[n:]
	return out, nil
}

// uvarint reads a number.
func (r *partReader) uvarint() (uint64, error) {
	x := uint64(0)
	for shift := 0; shift < 64; shift += 7 {
		if len(r.buf) == 0 {
			if err := r.fill(); err != nil {
				return 0, err
			}
		}
		c := r.buf[0]
		r.buf = r.buf[1:]
		if x |= uint64(c&0x7f) << shift; c < 0x80 {
			return x, nil
		}
	}
	return 0, ErrDamaged
}

// maxPath is longer than any path of a file, in bytes.
const maxPath = 1 << 20

// text reads a length and as many bytes.
func (r *partReader) text() (string, error) {
	n, err := r.uvarint()
	if err != nil {
		return "", err
	}
	if n > maxPath {
		return "", ErrDamaged
	}
	b, err := r.next(int(n))
	return string(b), err
}

// doc reads what Writer.doc has written.
func (r *partReader) doc() (d Doc, err error) {
	if d.Name, err = r.text(); err != nil {
		return d, err
	}
	var n [5]uint64
	for i := range n {
		if n[i], err = r.uvarint(); err != nil {
			return d, err
		}
	}
	d.State = State{Size: int64(n[0]), Modified: int64(n[1]), Changed: int64(n[2]), Inode: n[3]}
	d.Group = int(n[4])
	return d, nil
}

// parse reads a footer and checks that its parts follow one another.
func (f *footer) parse(b []byte) error {
	if string(b[:8]) != magic || crc32.Checksum(b[:footerSize-4], castagnoli) != binary.LittleEndian.Uint32(b[footerSize-4:]) {
		return ErrDamaged
	}
	for i, p := range []*int64{&f.groups, &f.grams, &f.docs, &f.gramsAt, &f.docsAt, &f.rootAt, &f.end} {
		if *p = int64(binary.LittleEndian.Uint64(b[8+i*8:])); *p < 0 || *p > 1<<40 {
			return ErrDamaged
		}
	}
	f.checks = binary.LittleEndian.Uint32(b[64:])
	if f.groups > 1<<31 || f.gramsAt+f.grams*gramSize != f.docsAt || f.docsAt > f.rootAt || f.rootAt > f.end {
		return ErrDamaged
	}
	return nil
}

// bytes is what parse reads.
func (f *footer) bytes() []byte {
	b := make([]byte, footerSize)
	copy(b, magic)
	for i, n := range []int64{f.groups, f.grams, f.docs, f.gramsAt, f.docsAt, f.rootAt, f.end} {
		binary.LittleEndian.PutUint64(b[8+i*8:], uint64(n))
	}
	binary.LittleEndian.PutUint32(b[64:], f.checks)
	binary.LittleEndian.PutUint32(b[footerSize-4:], crc32.Checksum(b[:footerSize-4], castagnoli))
	return b
}

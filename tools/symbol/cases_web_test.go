package symbol

// webCuts are of PHP and Ruby.
var webCuts = []cutText{
	{"a.php", `<?php
namespace App\Http;

/** Doc. */
#[Attr]
final class Cart extends Base implements Countable
{
    use Sums;

    // The most.
    const MAX = 3;
    private int $n = 3, $m = 4;
    protected ?string $name = null;

    public function __construct(private int $a) {}

    /**
     * Adds.
     */
    #[Pure]
    public static function make(int $a): static
    {
        return new static($a);
    }
}

enum Suit: string
{
    case Hearts = 'h';
    case Spades = 's';

    public function label(): string { return ''; }
}

function top() { return function () {}; }
?>
<p>text</p>
`, []cut{
		{"a method keeps its doc and its attribute", "Cart.make", "replace", "public static function make(int $a): static\n{\n    return null;\n}", "        return new static($a);", "        return null;", ""},
		{"a method with all of it", "make", "delete", "", "\n    /**\n     * Adds.\n     */\n    #[Pure]\n    public static function make(int $a): static\n    {\n        return new static($a);\n    }\n", "", ""},
		{"a constant with its comment", "Cart.MAX", "delete", "", "    // The most.\n    const MAX = 3;\n", "", ""},
		{"a property is called without its dollar", "Cart.name", "replace", "protected string $name = '';", "protected ?string $name = null;", "protected string $name = '';", ""},
		{"one of two properties", "Cart.n", "delete", "", "final", "", "together with others"},
		{"a case of an enum", "Suit.Hearts", "delete", "", "    case Hearts = 'h';\n", "", ""},
		{"after a method", "__construct", "after", "public function more() {}", "private int $a) {}\n", "private int $a) {}\n\n    public function more() {}\n", ""},
		{"a function before the page goes on", "top", "replace", "function top() {}", "function top() { return function () {}; }", "function top() {}", ""},
		{"a class with its attribute", "Cart", "before", "class Other {}", "/** Doc. */", "class Other {}\n\n/** Doc. */", ""},
	}},
	{"a.rb", `require "set"

module Shop
  # Holds items.
  class Cart < Base
    LIMIT = 3

    def initialize(n)
      @n = n
    end

    # Makes one.
    def self.make(n) = new(n)

    class << self
      def other
        <<~TEXT
          end
        TEXT
      end
    end

    private def ok?
      true
    end

    def ==(o)
      true
    end
  end
end

Point = Struct.new(:x) do
  def dist
    1
  end
end

class Shop::Item; end

def top(a) = a
`, []cut{
		{"a method", "Cart.initialize", "replace", "def initialize(n)\n  @n = n.to_i\nend", "@n = n\n", "@n = n.to_i\n", ""},
		{"a method of the class with its comment", "Shop.Cart.make", "delete", "", "\n    # Makes one.\n    def self.make(n) = new(n)\n", "", ""},
		{"an end in a text is none", "other", "delete", "", "      def other\n        <<~TEXT\n          end\n        TEXT\n      end\n", "", ""},
		{"a private method is one with the word", "ok?", "delete", "", "\n    private def ok?\n      true\n    end\n", "", ""},
		{"an operator", "Cart.==", "replace", "def ==(o)\n  false\nend", "def ==(o)\n      true", "def ==(o)\n      false", ""},
		{"the first of a body with its comment", "Cart", "before", "class Early; end", "  # Holds items.", "  class Early; end\n\n  # Holds items.", ""},
		{"inside a struct's block", "Point.dist", "replace", "def dist = 2", "  def dist\n    1\n  end", "  def dist = 2", ""},
		{"a name with a scope", "Shop.Item", "replace", "class Shop::Item\nend", "class Shop::Item; end", "class Shop::Item\nend", ""},
		{"a constant", "LIMIT", "replace", "LIMIT = 4", "LIMIT = 3", "LIMIT = 4", ""},
	}},
}

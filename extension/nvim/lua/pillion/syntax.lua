-- Syntax highlights for lines that are in no buffer: treesitter parses the whole new text, then the lines are cut
-- out.
local compat = require("pillion.compat")

local M = {}

local most = 256 * 1024 -- a longer text is not parsed; in bytes

---@param name string file name
---@param buf? integer
---@return string filetype
function M.filetype(name, buf)
  if buf and vim.bo[buf].filetype ~= "" then
    return vim.bo[buf].filetype
  end
  if vim.filetype and compat.has("0.8") then
    local ok, ft = pcall(vim.filetype.match, { filename = name })
    return ok and ft or ""
  end
  return ({ go = "go", lua = "lua", py = "python", js = "javascript", ts = "typescript", md = "markdown", rs = "rust", c = "c", h = "c" })[name:match("%.(%w+)$") or ""] or ""
end

-- Parses a text once and returns a function from lines (from 1) to their highlighted spans {first, last, group}, in
-- bytes from 0. Only the requested lines are queried. Without a parser there are no spans.
---@param s string
---@param filetype string
---@return fun(first: integer, last: integer): table<integer, {[1]: integer, [2]: integer, [3]: string}[]>
function M.spans(s, filetype)
  local function none()
    return {}
  end
  if filetype == "" or #s > most or not compat.has("0.9") then
    return none
  end
  local lang = compat.language(filetype)
  local ok, root, query = pcall(function()
    local get = vim.treesitter.query.get or vim.treesitter.query.get_query
    return vim.treesitter.get_string_parser(s, lang):parse()[1]:root(), get(lang, "highlights")
  end)
  if not ok or not query then
    return none
  end
  return function(first, last)
    local out = {}
    pcall(function()
      for id, node in query:iter_captures(root, s, first - 1, last) do
        local name = query.captures[id]
        if name:sub(1, 1) ~= "_" and name ~= "spell" and name ~= "conceal" then
          local r1, c1, r2, c2 = node:range()
          for row = math.max(r1, first - 1), math.min(r2, last - 1) do
            out[row + 1] = out[row + 1] or {}
            table.insert(out[row + 1], { row == r1 and c1 or 0, row == r2 and c2 or math.huge, "@" .. name .. "." .. lang })
          end
        end
      end
    end)
    return out
  end
end

-- Returns a line as chunks of virtual text over a background group. Later spans override earlier ones, as in a
-- buffer.
---@param line string
---@param spans? table[]
---@param base string
---@param tabstop integer
---@return table[]
function M.chunks(line, spans, base, tabstop)
  local function expand(s, column)
    if not s:find("\t", 1, true) then
      return s
    end
    local out = {}
    for before, tab in (s .. "\0"):gmatch("([^\t%z]*)([\t%z])") do
      out[#out + 1] = before
      column = column + vim.fn.strdisplaywidth(before)
      if tab == "\t" then
        local n = tabstop - column % tabstop
        out[#out + 1] = (" "):rep(n)
        column = column + n
      end
    end
    return table.concat(out)
  end
  if not spans or #spans == 0 or #line > 2000 then
    return { { expand(line, 0), base } }
  end
  local cuts = { [0] = true, [#line] = true }
  for _, s in ipairs(spans) do
    cuts[math.min(s[1], #line)] = true
    cuts[math.min(s[2], #line)] = true
  end
  local points = vim.tbl_keys(cuts)
  table.sort(points)
  local chunks, column = {}, 0
  for i = 1, #points - 1 do
    local a, b = points[i], points[i + 1]
    local group
    for _, s in ipairs(spans) do
      if s[1] <= a and s[2] >= b then
        group = s[3]
      end
    end
    local piece = expand(line:sub(a + 1, b), column)
    column = column + vim.fn.strdisplaywidth(piece)
    chunks[#chunks + 1] = { piece, group and { base, group } or base }
  end
  if #chunks == 0 then
    chunks[1] = { "", base }
  end
  return chunks
end

return M

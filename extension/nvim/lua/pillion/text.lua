-- Converts a buffer to a text and back: line ends, a missing final newline, NUL bytes, bytes that are not UTF-8. It
-- also converts positions. LSP counts lines from 0 and characters in UTF-16 units; rows and columns here count from
-- 0, columns in bytes.
local M = {}

---@class pillion.Snapshot
---@field lines string[] as the file has them, without line ends
---@field sep string
---@field eol boolean the text ends with a line end
---@field bytes boolean the text is not UTF-8: each byte is sent as the character with its number
---@field odd boolean lines contain line ends of other kinds, so LSP's lines are not Neovim's lines

-- Whether a text is valid UTF-8.
---@param s string
---@return boolean
function M.valid(s)
  local at = s:find("[\128-\255]")
  if not at then
    return true
  end
  s = s:sub(at)
  if s:find("[\192\193\245-\255]") then
    return false
  end
  s = s:gsub("[\194-\223][\128-\191]", "a")
  s = s:gsub("\224[\160-\191][\128-\191]", "a"):gsub("\237[\128-\159][\128-\191]", "a"):gsub("[\225-\236\238\239][\128-\191][\128-\191]", "a")
  s = s:gsub("\240[\144-\191][\128-\191][\128-\191]", "a"):gsub("\244[\128-\143][\128-\191][\128-\191]", "a")
  s = s:gsub("[\241-\243][\128-\191][\128-\191][\128-\191]", "a")
  return not s:find("[\128-\255]")
end

local function char_of(byte)
  local n = byte:byte()
  return string.char(192 + math.floor(n / 64), 128 + n % 64)
end

-- Converts bytes to characters with the same number.
---@param s string
---@return string
function M.widen(s)
  return (s:gsub("[\128-\255]", char_of))
end

-- Converts characters to the bytes with their number; nil if there is no such byte.
---@param s string
---@return string?
function M.narrow(s)
  if s:find("[\196-\255]") then
    return nil
  end
  return (s:gsub("([\194\195])([\128-\191])", function(a, b)
    return string.char((a:byte() - 192) * 64 + b:byte() - 128)
  end))
end

-- Reports whether the last line would be written with a newline.
---@param buf integer
---@return boolean
function M.has_eol(buf)
  return vim.bo[buf].eol or (vim.b[buf].pillion_eol == true)
end

---@param buf integer
---@return string
function M.separator(buf)
  local ff = vim.bo[buf].fileformat
  return ff == "dos" and "\r\n" or ff == "mac" and "\r" or "\n"
end

---@param buf integer
---@return boolean
function M.is_empty(buf)
  if vim.api.nvim_buf_line_count(buf) ~= 1 or vim.api.nvim_buf_get_lines(buf, 0, 1, false)[1] ~= "" then
    return false
  end
  return vim.api.nvim_buf_call(buf, function()
    return vim.fn.line2byte(2) == -1
  end)
end

-- Converts a buffer's text to the file's: Neovim stores NUL bytes as line feeds.
---@param lines string[]
---@return string[]
function M.with_nul(lines)
  for i, l in ipairs(lines) do
    if l:find("\n", 1, true) then
      lines[i] = l:gsub("\n", "\0")
    end
  end
  return lines
end

---@param buf integer
---@param lines? string[] its lines, if the caller has them
---@return pillion.Snapshot
function M.snapshot(buf, lines)
  lines = M.with_nul(lines or vim.api.nvim_buf_get_lines(buf, 0, -1, false))
  local snap = { lines = lines, sep = M.separator(buf), eol = M.has_eol(buf), bytes = false, odd = false }
  if #lines == 1 and lines[1] == "" and M.is_empty(buf) then
    snap.eol = false
  end
  for _, l in ipairs(lines) do
    if not snap.odd and l:find("\r", 1, true) then
      snap.odd = true
    end
    if not snap.bytes and l:find("[\128-\255]") and not M.valid(l) then
      snap.bytes = true
    end
  end
  return snap
end

---@param snap pillion.Snapshot
---@return string
function M.join(snap)
  local s = table.concat(snap.lines, snap.sep)
  if snap.eol then
    s = s .. snap.sep
  end
  return snap.bytes and M.widen(s) or s
end

---@param buf integer
---@return string
function M.of(buf)
  return M.join(M.snapshot(buf))
end

-- Converts a text with these line ends to the lines of a buffer. Neovim stores NUL bytes as line feeds.
---@param s string
---@param sep string
---@return string[] lines
---@return boolean eol
function M.split(s, sep)
  local lines = vim.split(s, sep == "\r\n" and "\n" or sep, { plain = true })
  for i, l in ipairs(lines) do
    if sep == "\r\n" and l:sub(-1) == "\r" then
      l = l:sub(1, -2)
    end
    lines[i] = l:find("\0", 1, true) and l:gsub("%z", "\n") or l
  end
  local eol = #lines > 1 and lines[#lines] == ""
  if eol then
    table.remove(lines)
  end
  return lines, eol
end

-- Returns the number of UTF-16 units of a valid text.
---@param s string
---@return integer
function M.utf16(s)
  if not s:find("[\128-\255]") then
    return #s
  end
  local _, continuations = s:gsub("[\128-\191]", "")
  local _, pairs4 = s:gsub("[\240-\247]", "")
  return #s - continuations + pairs4
end

-- Returns the byte column of a UTF-16 character; at most the end of the line.
---@param line string
---@param character integer
---@return integer
function M.column(line, character)
  if not line:find("[\128-\255]") then
    return math.min(character, #line)
  end
  local units, i = 0, 1
  while i <= #line and units < character do
    local b = line:byte(i)
    local n = b < 192 and 1 or b < 224 and 2 or b < 240 and 3 or 4
    units = units + (n == 4 and 2 or 1)
    if units > character then
      break
    end
    i = i + n
  end
  return math.min(i - 1, #line)
end

-- Returns the byte offset of an LSP position in a text, with LSP's line ends: \n, \r\n and \r.
---@param s string
---@param pos {line: integer, character: integer}
---@return integer
function M.offset(s, pos)
  local at = 1
  for _ = 1, pos.line do
    local e = s:find("[\r\n]", at)
    if not e then
      return #s
    end
    at = s:sub(e, e + 1) == "\r\n" and e + 2 or e + 1
  end
  local stop = s:find("[\r\n]", at) or (#s + 1)
  return at - 1 + M.column(s:sub(at, stop - 1), pos.character)
end

return M

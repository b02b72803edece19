-- The differences between Neovim 0.7 and 0.12. All other files use the names that are defined here.
local M = {}

M.uv = vim.uv or vim.loop

---@param version string for example "0.10"
---@return boolean
function M.has(version)
  return vim.fn.has("nvim-" .. version) == 1
end

-- Sets an option of one window only; `vim.wo` would also set what new windows inherit.
---@param win integer
---@param name string
---@param value any
function M.win_option(win, name, value)
  if M.has("0.8") then
    pcall(vim.api.nvim_set_option_value, name, value, { scope = "local", win = win })
  else
    pcall(vim.api.nvim_win_call, win, function()
      vim.opt_local[name] = value
    end)
  end
end

---@param value any
---@return string
function M.json_encode(value)
  return vim.json.encode(value)
end

-- Decodes one message. Neovim's decoder refuses a lone surrogate, so it is replaced by U+FFFD.
---@param text string
---@return boolean ok
---@return any value
function M.json_decode(text)
  local nils = { luanil = { object = true, array = true } }
  local ok, value = pcall(vim.json.decode, text, nils)
  if ok or not text:find("\\u[dD]") then
    return ok, value
  end
  -- Escaped backslashes are replaced first, so that `\\ud800` (a backslash and letters) is not taken for an escape.
  local s = text:gsub("\\\\", "\1\1")
  s = s:gsub("\\u([dD][89abAB]%x%x)\\u([dD][c-fC-F]%x%x)", "\2%1\3%2")
  s = s:gsub("\\u[dD][89a-fA-F]%x%x", "\\ufffd")
  s = s:gsub("\2(%x%x%x%x)\3", "\\u%1\\u"):gsub("\1\1", "\\\\")
  return pcall(vim.json.decode, s, nils)
end

-- An empty JSON object; an empty table would be encoded as a list.
M.object = vim.empty_dict

local alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

---@param data string
---@return string
function M.base64(data)
  if vim.base64 then
    return vim.base64.encode(data)
  end
  local out, n = {}, 0
  for i = 1, #data, 3 do
    local a, b, c = data:byte(i, i + 2)
    local v = a * 65536 + (b or 0) * 256 + (c or 0)
    local digits = {}
    for shift = 18, 0, -6 do
      local d = math.floor(v / 2 ^ shift) % 64 + 1
      digits[#digits + 1] = alphabet:sub(d, d)
    end
    if not b then
      digits[3] = "="
    end
    if not c then
      digits[4] = "="
    end
    n = n + 1
    out[n] = table.concat(digits)
  end
  return table.concat(out)
end

---@param pattern string
---@param data? table
function M.user_event(pattern, data)
  local opts = { pattern = pattern, modeline = false, data = data }
  if not M.has("0.8") then
    opts.data = nil
    vim.g.pillion_event = data
  end
  pcall(vim.api.nvim_exec_autocmds, "User", opts)
end

---@param buf integer
---@return boolean
function M.loaded(buf)
  return vim.api.nvim_buf_is_valid(buf) and vim.api.nvim_buf_is_loaded(buf)
end

-- Starts treesitter highlighting if the language has a parser.
---@param buf integer
---@param lang string
---@return boolean
function M.treesitter(buf, lang)
  if not (vim.treesitter and vim.treesitter.start) then
    return false
  end
  local ok, parser = pcall(vim.treesitter.get_parser, buf, lang)
  return ok and parser ~= nil and pcall(vim.treesitter.start, buf, lang)
end

---@param filetype string
---@return string
function M.language(filetype)
  local t = vim.treesitter
  if t and t.language and t.language.get_lang then
    return t.language.get_lang(filetype) or filetype
  end
  return filetype
end

---@param old string
---@param new string
---@param opts table
function M.diff(old, new, opts)
  local f = (vim.text and vim.text.diff) or vim.diff
  return f(old, new, opts)
end

return M

-- Files, URIs and the buffers that show them.
local compat = require("pillion.compat")

local M = {}

---@param uri string
---@return string
function M.from_uri(uri)
  return uri:match("^file:") and vim.uri_to_fname(uri) or uri
end

---@param path string
---@return string
function M.to_uri(path)
  return vim.uri_from_fname(path)
end

---@param path string
---@return string
function M.real(path)
  return compat.uv.fs_realpath(path) or path
end

-- Returns the name that `:edit` would give a file's buffer: relative to the working directory if the file is in it.
---@param path string absolute
---@return string
function M.name(path)
  return vim.fn.fnamemodify(path, ":.")
end

-- Returns the path as shown to a person: relative to the folder if that is shorter.
---@param path string
---@param cwd? string
---@return string
function M.short(path, cwd)
  cwd = cwd or vim.fn.getcwd()
  if path:sub(1, #cwd + 1) == cwd .. "/" then
    return path:sub(#cwd + 2)
  end
  return vim.fn.fnamemodify(path, ":~")
end

-- Returns the buffer of a file, even if the buffer's name or the path goes through a symbolic link; nil if there is
-- none.
---@param path string
---@return integer?
function M.buffer(path)
  local bufs = vim.api.nvim_list_bufs()
  for _, b in ipairs(bufs) do
    if vim.api.nvim_buf_get_name(b) == path and vim.bo[b].buftype == "" then
      return b
    end
  end
  local real = M.real(path)
  for _, b in ipairs(bufs) do
    local name = vim.api.nvim_buf_get_name(b)
    if name ~= "" and vim.api.nvim_buf_is_loaded(b) and vim.bo[b].buftype == "" and M.real(name) == real then
      return b
    end
  end
end

-- Returns the buffer of a file; creates and loads it if there is none. No window changes.
---@param path string
---@return integer
function M.load(path)
  local b = M.buffer(path)
  if not b then
    b = vim.fn.bufadd(M.name(path))
    vim.bo[b].buflisted = true
  end
  if not vim.api.nvim_buf_is_loaded(b) then
    -- No question about the swap file of another Neovim: the file is only shown.
    local shortmess = vim.o.shortmess
    vim.o.shortmess = shortmess .. "A"
    pcall(vim.fn.bufload, b)
    vim.o.shortmess = shortmess
  end
  return b
end

---@param path string
---@return boolean
function M.exists(path)
  return compat.uv.fs_stat(path) ~= nil
end

-- Returns the content of a file, or nil if it cannot be read.
---@param path string
---@return string? text
---@return string? err
function M.read(path)
  local f, err = io.open(path, "rb")
  if not f then
    return nil, err
  end
  local s = f:read("*a")
  f:close()
  if not s then
    return nil, path .. " cannot be read (a folder?)"
  end
  return s
end

-- Returns a window of this tab page that shows a buffer, or nil.
---@param buf integer
---@return integer?
function M.window(buf)
  for _, w in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
    if vim.api.nvim_win_get_buf(w) == buf then
      return w
    end
  end
end

-- Reports whether a window may show another buffer. Without 'hidden', a buffer with unsaved text needs its last
-- window.
local function may_leave(win)
  local b = vim.api.nvim_win_get_buf(win)
  local how = vim.bo[b].bufhidden
  return how == "hide" or (how == "" and vim.o.hidden) or not vim.bo[b].modified or #vim.fn.win_findbuf(b) > 1
end

-- Returns the window for files: the last used one that shows an ordinary buffer, else any; nil if there is none.
---@param free? boolean only a window that may show another buffer
---@return integer?
function M.editor_window(free)
  local function fits(w)
    if not vim.api.nvim_win_is_valid(w) or vim.api.nvim_win_get_config(w).relative ~= "" then
      return false
    end
    local b = vim.api.nvim_win_get_buf(w)
    local pinned = pcall(function() return vim.wo[w].winfixbuf end) and vim.wo[w].winfixbuf
    return not pinned and (not free or may_leave(w)) and (vim.bo[b].buftype == "" or vim.b[b].pillion_preview ~= nil) and not vim.wo[w].previewwindow
  end
  if fits(vim.api.nvim_get_current_win()) then
    return vim.api.nvim_get_current_win()
  end
  local last = vim.fn.win_getid(vim.fn.winnr("#"))
  if last ~= 0 and fits(last) then
    return last
  end
  for _, w in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
    if fits(w) then
      return w
    end
  end
end

return M

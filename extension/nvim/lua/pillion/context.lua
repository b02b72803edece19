-- The context that is sent with a prompt: @file, @buffer, @diagnostics, @quickfix, @selection, paths of images, a
-- range.
local compat = require("pillion.compat")
local log = require("pillion.log")
local paths = require("pillion.paths")
local selection = require("pillion.selection")
local text = require("pillion.text")

---@class pillion.Context
---@field name string as the person sees it
---@field block table ACP content

local M = {}

-- In bytes: a longer text is cut off, a larger image is not sent.
local max_text, max_image = 512 * 1024, 8 * 1024 * 1024

M.words = {
  ["@buffer"] = "the file in front",
  ["@selection"] = "what was selected last",
  ["@diagnostics"] = "problems of the file in front (@diagnostics:all for all)",
  ["@quickfix"] = "the quickfix list",
}

local images = { png = "image/png", jpg = "image/jpeg", jpeg = "image/jpeg", gif = "image/gif", webp = "image/webp" }

-- Returns the file in the current window, or else the last one that was.
---@return integer?
function M.front()
  local buf = vim.api.nvim_get_current_buf()
  if vim.bo[buf].buftype == "" and vim.api.nvim_buf_get_name(buf) ~= "" then
    return buf
  end
  local win = paths.editor_window()
  buf = win and vim.api.nvim_win_get_buf(win)
  return buf and vim.api.nvim_buf_get_name(buf) ~= "" and buf or nil
end

local function resource(uri, words)
  if not text.valid(words) then
    words = text.widen(words)
  end
  if #words > max_text then
    words = words:sub(1, max_text):gsub("[\192-\255]?[\128-\191]*$", "") .. "\n… (cut off)"
  end
  return { type = "resource", resource = { uri = uri, text = words, mimeType = "text/plain" } }
end

---@param s pillion.Selection
---@return pillion.Context
function M.range(s)
  local where = s.first == s.last and ("#L%d"):format(s.first) or ("#L%d-L%d"):format(s.first, s.last)
  local path = s.path ~= "" and s.path or (vim.fn.getcwd() .. "/unnamed")
  return { name = paths.short(path) .. ":" .. s.first .. (s.last ~= s.first and "-" .. s.last or ""), block = resource(paths.to_uri(path) .. where, s.text) }
end

local function image(path, mime)
  local size = vim.fn.getfsize(path)
  if size > max_image then
    log.tell("warn", ("%s is too large for an image (%d bytes, the limit is %d)"):format(paths.short(path), size, max_image))
    return nil
  end
  local data = paths.read(path)
  return data and { type = "image", mimeType = mime, data = compat.base64(data), uri = paths.to_uri(path) }
end

-- Returns a file, folder or image as context.
---@param path string absolute
---@return pillion.Context?
function M.file(path)
  local mime = images[(path:match("%.(%w+)$") or ""):lower()]
  local block = mime and image(path, mime)
  if not block then
    block = { type = "resource_link", uri = paths.to_uri(path), name = paths.short(path) }
  end
  return { name = paths.short(path), block = block }
end

local function quickfix()
  local out = {}
  for _, i in ipairs(vim.fn.getqflist()) do
    local name = i.bufnr > 0 and paths.short(vim.api.nvim_buf_get_name(i.bufnr)) or ""
    out[#out + 1] = ("%s:%d:%d: %s"):format(name, i.lnum, i.col, i.text)
  end
  return table.concat(out, "\n"), #out
end

-- Returns the context that a word of a prompt names, or nil if it is an ordinary word.
---@param word string with its @
---@param cwd string
---@return pillion.Context?
function M.mention(word, cwd)
  if word == "@buffer" or word == "@file" then
    local buf = M.front()
    if not buf then
      return nil
    end
    local path = vim.api.nvim_buf_get_name(buf)
    return { name = "buffer " .. paths.short(path), block = resource(paths.to_uri(path), text.of(buf)) }
  elseif word == "@selection" then
    local s = selection.current()
    return s and M.range(s)
  elseif word:match("^@diagnostics") then
    local buf = word ~= "@diagnostics:all" and M.front() or nil
    local words, n = require("pillion.diagnostics").text(buf)
    return { name = n .. " diagnostics", block = { type = "text", text = n == 0 and "There are no diagnostics." or "Diagnostics of the editor:\n" .. words } }
  elseif word == "@quickfix" then
    local words, n = quickfix()
    return { name = n .. " quickfix entries", block = { type = "text", text = n == 0 and "The quickfix list is empty." or "The quickfix list:\n" .. words } }
  end
  local name = word:sub(2):gsub("[%.,;:!%?%)]+$", "")
  for _, candidate in ipairs({ word:sub(2), name }) do
    local path = candidate:match("^/") and candidate or candidate:match("^~") and vim.fn.expand(candidate) or (cwd .. "/" .. candidate)
    if candidate ~= "" and paths.exists(path) then
      return M.file(path)
    end
  end
end

-- Returns a prompt and the context that it mentions, as ACP content.
---@param words string
---@param attached pillion.Context[]
---@param cwd string
---@return table[] blocks
---@return string shown
function M.blocks(words, attached, cwd)
  local blocks, names, seen = { { type = "text", text = words } }, {}, {}
  local function add(c)
    if c and not seen[c.name] then
      seen[c.name] = true
      blocks[#blocks + 1] = c.block
      names[#names + 1] = c.name
    end
  end
  for _, c in ipairs(attached) do
    add(c)
  end
  for word in (" " .. words):gmatch("%s(@[^%s]+)") do
    add(M.mention(word, cwd))
  end
  for word in words:gmatch("[^%s]+") do -- an image needs no @, only its path
    local mime = images[(word:match("%.(%w+)$") or ""):lower()]
    if mime and word:sub(1, 1) ~= "@" then
      local path = word:match("^[/~]") and vim.fn.expand(word) or (cwd .. "/" .. word)
      if paths.exists(path) then
        add(M.file(path))
      end
    end
  end
  local shown = words
  if #names > 0 then
    shown = shown .. "\n+ " .. table.concat(names, ", ")
  end
  return blocks, shown
end

return M

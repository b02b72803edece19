-- Folds of a conversation. They are created by hand in each window, so that an opened fold stays open. Adds to the
-- class.

---@param Buffer pillion.ChatBuffer
return function(Buffer)
  -- Folds an entry's lines in the windows that show them.
  ---@param entry pillion.Entry
  function Buffer:fold(entry)
    local p = self.placed[entry]
    if not p.foldable or not p.index then
      return
    end
    local first = self:row(p.index) + p.gap + 1
    local last = first + p.count - p.gap - 1
    if last <= first then
      return
    end
    for _, w in ipairs(vim.fn.win_findbuf(self.buf)) do
      vim.api.nvim_win_call(w, function()
        if vim.fn.foldlevel(first) > 0 then
          local view = vim.fn.winsaveview()
          local was_open = vim.fn.foldclosed(first) == -1
          vim.fn.cursor(first, 1)
          pcall(vim.cmd, "silent! normal! zd")
          pcall(vim.cmd, ("silent! %d,%dfold"):format(first, last))
          if was_open then
            pcall(vim.cmd, ("silent! %dfoldopen"):format(first))
          end
          vim.fn.winrestview(view)
        else
          pcall(vim.cmd, ("silent! %d,%dfold"):format(first, last))
        end
      end)
    end
    p.folded = true
  end

  -- Creates the folds in a window that now shows the buffer.
  ---@param win integer
  function Buffer:fold_all(win)
    vim.api.nvim_win_call(win, function()
      pcall(vim.cmd, "silent! normal! zE")
      local row = 0
      for _, e in ipairs(self.order) do
        local p = self.placed[e]
        if p.foldable then
          local first, last = row + p.gap + 1, row + p.count
          if last > first then
            pcall(vim.cmd, ("silent! %d,%dfold"):format(first, last))
          end
        end
        row = row + p.count
      end
    end)
  end
end
